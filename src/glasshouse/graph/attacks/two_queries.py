"""Attacks on two queries about a node, alone and in the whole graph: a classifier and a regressed likelihood ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from glasshouse.attacks import QueryCount
from glasshouse.attacks.attack import register
from glasshouse.attacks.classifier import Case, LearnedClassifier, sorted_log_probabilities
from glasshouse.attacks.prior import prior_log_odds
from glasshouse.attacks.regressed import Regression
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import check_simulation
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse.graph.scene import Scene


def _asked(scene: Scene) -> tuple[Evidence, ...]:
    """Evidence about all nodes with a label, queried alone and in the whole graph."""
    return tuple(scene.of_nodes(one, scene.labelled) for one in (scene.zero_hop, scene.whole_graph))


@register("g-classifier")
@dataclass(frozen=True, kw_only=True)
class GClassifier(LearnedClassifier[Scene], GraphAttack):
    """A perceptron on sorted class probabilities of two queries: the node alone, and the node in the whole graph.

    The paper's "MLP (0+2-hop)" with several shadow models; "MLP (0-hop)" is the i.i.d. attack ``classifier``.

    Args:
        hidden: widths of its hidden layers.
        examples: how many answers it learns from, at most.
        epochs: passes over them.
        seed: seed of its weights, batches and draw.

    Example:
        >>> GClassifier().name
        'g-classifier'
    """

    def _case(self, scene: Scene) -> Case:
        alone, within = _asked(scene)
        answers = _features(alone.shadow_logits, within.shadow_logits)
        asked = _features(alone.target_logits, within.target_logits)[scene.among_labelled]
        return Case(answers, alone.shadow_members.reshape(-1), asked)

    def queries(self, scene: Scene) -> QueryCount:
        """The target twice about each node, and the shadow models about the examples."""
        return QueryCount(2.0, shared=2 * min(self.examples, scene.shadow_members.size))


def _features(*logits: Any) -> FloatArray:
    """[rows, 2 C] from the logits [..., C] of both queries."""
    return np.concatenate([sorted_log_probabilities(np.reshape(one, (-1, one.shape[-1]))) for one in logits], axis=1)


@register("g-regressed")
@dataclass(frozen=True, kw_only=True)
class GRegressed(Regression[Scene], GraphAttack):
    r"""Posterior probability of membership from the margins of two queries: the node alone, and in the whole graph.

    Given membership, both margins are a bivariate Gaussian whose means are linear in the node's four mean margins, over
    in- and out-models in either query, with one covariance per side. The sixteen numbers are fitted by least squares to
    all simulated targets and all nodes of the graph, audited or not. Offline, only the two means over out-models are
    used, and the numbers that judge a node come from other nodes. `glasshouse.attacks.Regressed` is the same with only
    the first query.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the node.
        prior: λ, the share of members expected before looking at the model: one number, or one per node of the graph.
        folds: number of groups of nodes for fitting offline.
        seed: seed of the draw of these groups.

    Example:
        >>> GRegressed(mode="offline")
        GRegressed(mode='offline', prior=0.5, folds=5, seed=0)
    """

    def check(self, members: BoolArray) -> None:
        """Refuse a pool with too few models to simulate targets."""
        check_simulation(len(members))

    def _asked(self, scene: Scene) -> tuple[Evidence, ...]:
        return _asked(scene)

    def _posteriors(self, scene: Scene, log_ratio: FloatArray) -> FloatArray:
        odds = prior_log_odds(self.prior, int(scene.data.num_nodes))
        own = odds[scene.labelled] if odds.ndim else odds
        return np.asarray(expit(log_ratio + own))[scene.among_labelled]

    def queries(self, scene: Scene) -> QueryCount:
        """The target and the references twice about each audited node; all other answers are used for the fit."""
        asked = ~scene.shadow_members if self.mode == "offline" else scene.shadow_members | True
        references = int(asked[:, scene.nodes].sum())
        per_record = 2 * (1 + references / len(scene.nodes))
        return QueryCount(per_record, shared=2 * (scene.shadow_members.size - references))
