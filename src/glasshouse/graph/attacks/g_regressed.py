"""The regressed likelihood ratio on graphs: a node queried alone and in the whole graph, both answers together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from glasshouse.attacks import QueryCount
from glasshouse.attacks.attack import register
from glasshouse.attacks.in_out_moments import side_moments, simulated_moments, wanted_sides
from glasshouse.attacks.prior import check_prior, prior_log_odds
from glasshouse.attacks.regressed import Example, SidesFit, fit_sides, mean_margins, record_folds
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import loss_to_margin
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import check_simulation
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse.graph.scene import Scene


@register("g-regressed")
@dataclass(frozen=True, kw_only=True)
class GRegressed(GraphAttack):
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

    version: ClassVar[int] = 2
    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    folds: int = 5
    seed: int = 0
    fit_: SidesFit | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.folds < 2:
            raise InputError(f"folds: {self.folds} is too few; a node's numbers come from other folds. Use 5.")

    def check(self, members: BoolArray) -> None:
        """Refuse a pool with too few models to simulate targets."""
        check_simulation(len(members))

    def tuned(self, scene: Scene) -> Self:
        """The same attack with its sixteen numbers learned from this pool; it does not look at the target."""
        return dataclasses.replace(self, fit_=self._fit(scene))

    def score(self, scene: Scene) -> FloatArray:
        """Posteriors, [nodes]."""
        asked = _asked(scene)
        signals = np.concatenate([mean_margins(side_moments(evidence, self.mode)) for evidence in asked], axis=1)
        margins = np.stack([loss_to_margin(evidence.target_loss) for evidence in asked], axis=1)
        return self._posteriors(scene, self._fit(scene), signals, margins)

    def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Posteriors and members, [nodes] each, of each simulated target, by the numbers that also judge the target.

        These numbers were fitted to the simulated target too. But sixteen numbers from many thousands of answers
        cannot remember a model.
        """
        fit = self._fit(scene)
        for signals, margins, members in self._examples(_asked(scene)):
            yield self._posteriors(scene, fit, signals, margins), members[scene.among_labelled]

    def _fit(self, scene: Scene) -> SidesFit:
        asked = _asked(scene)
        folds = record_folds(asked[0].records, mode=self.mode, folds=self.folds, seed=self.seed)
        return self.fit_ or fit_sides(self._examples(asked), folds)

    def _examples(self, asked: tuple[Evidence, ...]) -> Iterator[Example]:
        """Of each simulated target: mean margins of its references for every node [n, 4 or 2], its own [n, 2]."""
        sides = wanted_sides(self.mode)
        for targets in zip(*(simulated_moments(one, sides) for one in asked), strict=True):
            signals = np.concatenate([mean_margins(target.sides) for target in targets], axis=1)
            margins = np.stack([target.statistic for target in targets], axis=1)
            yield Example(signals, margins, targets[0].members)

    def _posteriors(self, scene: Scene, fit: SidesFit, signals: FloatArray, margins: FloatArray) -> FloatArray:
        odds = prior_log_odds(self.prior, int(scene.data.num_nodes))
        own = odds[scene.labelled] if odds.ndim else odds
        return np.asarray(expit(fit.log_ratio(signals, margins) + own))[scene.among_labelled]

    def queries(self, scene: Scene) -> QueryCount:
        """The target and the references twice about each audited node; all other answers are used for the fit."""
        asked = ~scene.shadow_members if self.mode == "offline" else scene.shadow_members | True
        references = int(asked[:, scene.nodes].sum())
        per_record = 2 * (1 + references / len(scene.nodes))
        return QueryCount(per_record, shared=2 * (scene.shadow_members.size - references))


def _asked(scene: Scene) -> tuple[Evidence, ...]:
    """Evidence about all nodes, queried alone and in the whole graph."""
    return tuple(scene.of_nodes(one, scene.labelled) for one in (scene.zero_hop, scene.whole_graph))
