"""The best attack on a graph: attacks of both kinds, picked by the members of simulated targets they find."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks import Attack
from glasshouse.attacks.prior import check_prior
from glasshouse.attacks.simulation import check_simulation
from glasshouse.errors import InputError
from glasshouse.evaluation.best import Pick, Scored, candidate_names, pick_best
from glasshouse.evaluation.metrics import DEFAULT_FPRS
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.attack import GRAPH_ATTACKS, GraphAttack, Judgement, make_attack, register_graph_attack
from glasshouse.graph.scene import Scene

__all__ = ["GraphBest", "graph_candidate_names"]

_CANDIDATES = ("g-base", "g-regressed", "g-stacked")


def graph_candidate_names() -> tuple[str, ...]:
    """The attacks of both kinds that are worth trying on a graph, of those that are registered.

    Example:
        >>> "g-base" in graph_candidate_names()
        True
    """
    return (*candidate_names(), *(name for name in _CANDIDATES if name in GRAPH_ATTACKS.names()))


@register_graph_attack("best")
@dataclass(frozen=True, kw_only=True)
class GraphBest(GraphAttack):
    """Whichever candidate finds most members of simulated targets at the smallest false-positive rate that is wanted.

    `glasshouse.evaluation.Best` for graphs: attacks on records (with zero-hop queries) and on graphs compete.

    Args:
        mode: ``"online"`` or ``"offline"``, for all candidates.
        prior: λ, the share of members expected before looking at the model: one number, or one a node of the graph.
        fprs: wanted false-positive rates; the smallest that simulated targets can resolve decides.
        candidates: names of the attacks to try; by default those that are worth it.
        seed: of every random choice.

    Example:
        >>> GraphBest(candidates=("base", "g-base"))
        GraphBest(mode='online', prior=0.5, fprs=(0.01, 0.001), candidates=('base', 'g-base'), seed=0)
    """

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    fprs: tuple[float, ...] = DEFAULT_FPRS
    candidates: Sequence[str] = dataclasses.field(default_factory=graph_candidate_names)
    seed: int = 0

    @property
    def toggles(self) -> bool:
        """Whether one of its candidates may use a fast engine."""
        return any(name in GRAPH_ATTACKS.names() for name in self.candidates)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if "best" in self.candidates:
            raise InputError("candidates: best cannot be one of its own candidates.")
        for name in self.candidates:  # a misspelt candidate is refused before the long work
            make_attack(name, {})

    def check(self, members: BoolArray) -> None:
        """Refuse a pool of too few models to simulate targets; a candidate that cannot run is left out later."""
        check_simulation(len(members))

    def pick(self, scene: Scene) -> Pick[Attack | GraphAttack]:
        """The best candidate for this pool; neither the target nor the scene's truth is looked at."""

        def tried(name: str) -> Callable[[], tuple[Attack | GraphAttack, Scored]]:
            return lambda: self._trial(name, scene)

        return pick_best({name: tried(name) for name in self.candidates}, self.fprs)

    def judge(self, scene: Scene) -> Judgement:
        """What the picked attack says, [nodes]."""
        attack = self.pick(scene).attack
        if isinstance(attack, GraphAttack):
            return attack.judge(scene)
        evidence = scene.record_evidence
        return Judgement(attack.score(evidence), {}, attack.queries(evidence), attack.warning(evidence))

    def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Those of the picked attack."""
        yield from self.pick(scene).simulated

    def _trial(self, name: str, scene: Scene) -> tuple[Attack | GraphAttack, Scored]:
        # attacks on records know only the audited nodes, graph attacks all of them
        whole = name in GRAPH_ATTACKS.names() or np.ndim(self.prior) == 0
        prior = self.prior if whole else np.asarray(self.prior)[scene.nodes]
        attack = make_attack(name, {}, mode=self.mode, prior=prior, seed=self.seed)
        if isinstance(attack, GraphAttack):
            learned = attack.tuned(scene)
            return learned, list(learned.simulated_scores(scene))
        evidence = scene.record_evidence
        settled = attack.tuned(evidence)
        return settled, list(settled.simulated_scores(evidence))
