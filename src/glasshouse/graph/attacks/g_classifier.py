"""The classifier attack on graphs: a network that sees the answers about a node alone and with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glasshouse.attacks import QueryCount
from glasshouse.attacks.attack import register
from glasshouse.attacks.classifier import Case, LearnedClassifier, sorted_log_probabilities
from glasshouse.core.arrays import FloatArray
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse.graph.scene import Scene


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
        alone, within = (scene.of_nodes(one, scene.labelled) for one in (scene.zero_hop, scene.whole_graph))
        answers = _features(alone.shadow_logits, within.shadow_logits)
        asked = _features(alone.target_logits, within.target_logits)[scene.among_labelled]
        return Case(answers, alone.shadow_members.reshape(-1), asked)

    def queries(self, scene: Scene) -> QueryCount:
        """The target twice about each node, and the shadow models about the examples."""
        return QueryCount(2.0, shared=2 * min(self.examples, scene.shadow_members.size))


def _features(*logits: Any) -> FloatArray:
    """[rows, 2 C] from the logits [..., C] of both queries."""
    return np.concatenate([sorted_log_probabilities(np.reshape(one, (-1, one.shape[-1]))) for one in logits], axis=1)
