"""The stacked attack on graphs: a posterior learned over all signals about a node, from simulated targets alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from numpy.typing import ArrayLike

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks import Judgement, QueryCount, register
from glasshouse.attacks.prior import check_prior, learned_posterior, with_prior
from glasshouse.attacks.regression import record_folds
from glasshouse.attacks.stacking import Boosted, Linear, warning
from glasshouse.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.evidence.simulation import check_simulation
from glasshouse.graph.attacks.attack import GraphAttack
from glasshouse.graph.attacks.stacking import SIGNALS, Learned, learn, set_stage
from glasshouse.graph.scene import Scene
from glasshouse.registry import did_you_mean

__all__ = ["GStacked"]


@dataclass(eq=False)
class Kept:
    """What an attack learned last, and the parameters that it was learned with.

    Args:
        parameters: all that enter the learning; the prior and the number of jobs do not.
        found: what was learned; None before the first target.
    """

    parameters: tuple[object, ...] = ()
    found: Learned | None = None


@register("g-stacked")
@dataclass(frozen=True, kw_only=True)
class GStacked(GraphAttack):
    """Posterior probability that a node was trained on, learned from simulated targets.

    Each shadow model plays the target, judged by the pool without itself and its complement; who trained it is known.
    What several attacks say of a node, asked alone, in the whole graph and under sampled training sets, what its kin
    (nodes with like features) lead to expect of these answers, what its presence does to its neighbours, and what is
    believed of these, become a posterior by boosted trees (or by a regression, where that tells held-out simulated
    targets better). In every further round the training sets are sampled from the posterior of the one before. The true
    target is only ever scored. Where it answers unlike all simulated targets (the figure ``mismatch``, in standard
    deviations among these, is past 5), its answers are matched to theirs quantile by quantile, and BASE or G-BASE,
    which learned nothing, has a large say in the order; the posterior is then not calibrated.

    All that depends on the pool is learned once and kept for the next target with the same shadow models. It is kept by
    the attack, for exactly these parameters: a copy by `dataclasses.replace` with another prior shares it, a copy with
    another mode, seed or the like learns anew.

    Args:
        mode: ``"online"``; or ``"offline"``, where only models without a node speak about it, and the posterior that
            judges it is learned from other nodes.
        prior: λ, the share of members expected before looking: one number, or one a node.
        samples: training sets in each round; one number is one round.
        targets: at most so many shadow models play the target.
        speakers: at most so many shadow models are asked about sampled training sets.
        folds: in how many groups of nodes it is learned offline.
        without: signals that are not looked at, of alone, whole, sampled, kin, gain, g-base, neighbours, degree, label
            and posterior; to learn what each of them buys. Without ``kin`` graphs with many features take less time.
        boosted: the boosted learner; its parameters.
        linear: the linear learner.
        engine: how signals are computed; see `toggle_losses`.
        seed: of every random choice.
        jobs: fits side by side; -1 for as many as there are cores. Scores do not depend on it.

    Example:
        >>> GStacked(samples=(8,)).name  # one round
        'g-stacked'
    """

    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    samples: tuple[int, ...] = (8, 8, 8)
    targets: int = 16
    speakers: int = 32
    folds: int = 4
    without: Sequence[str] = ()
    boosted: Boosted = field(default_factory=Boosted)
    linear: Linear = field(default_factory=Linear)
    engine: str = "auto"
    seed: int = 0
    jobs: int = field(default=1, repr=False, compare=False)  # how, not what
    kept_: Kept = field(default_factory=Kept, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if not self.samples or min(self.samples) < 1:
            raise InputError(f"samples: {self.samples}; use one or more rounds of 1 or more.")
        if self.folds < 2 or self.targets < 4:
            raise InputError(f"folds, targets: {self.folds}, {self.targets}; use 2 and 4, or more.")
        if isinstance(self.without, str) or not isinstance(self.without, Sequence):
            raise InputError(f"without: {self.without!r} is no list; give a list of signals' names.")
        unknown = [str(name) for name in self.without if name not in SIGNALS]
        if unknown:
            raise InputError(f'without: no signal is called "{unknown[0]}".{did_you_mean(unknown[0], SIGNALS)}')
        if self.kept_.parameters != self._parameters:  # it came with a copy of an attack that learns something else
            object.__setattr__(self, "kept_", Kept(self._parameters))

    @property
    def _parameters(self) -> tuple[object, ...]:
        """All that enters the learning."""
        numbers = (tuple(self.samples), self.targets, self.speakers, self.folds, self.seed)
        return (self.mode, self.engine, tuple(self.without), self.boosted, self.linear, *numbers)

    def check(self, members: BoolArray) -> None:
        """Refuse a pool of too few models to simulate targets."""
        check_simulation(len(members))

    def judge(self, scene: Scene) -> Judgement:
        """Posteriors of the scene's audited nodes."""
        known = self.learned(scene)
        odds, mismatch = known.opinion(scene.target)
        scores = self._scores(odds, known)[scene.nodes]
        each, shared = known.queries  # all nodes are asked about, whichever are audited
        elsewhere = round(each * (len(odds) - len(scene.nodes)))
        queries = QueryCount(each, shared=shared + elsewhere)
        return Judgement(scores, queries, warning(self.name, mismatch), {"mismatch": mismatch})

    def score(self, scene: Scene) -> FloatArray:
        """Posteriors, [nodes]."""
        return self.judge(scene).scores

    def learned(self, scene: Scene) -> Learned:
        """What this pool teaches, learned at the first scene that has it; the scene's target is not looked at."""
        known = self.kept_.found
        if (
            known is not None
            and self.kept_.parameters == self._parameters  # a list of signals may have changed since
            and known.stage.is_of(scene.data, scene.shadows, scene.shadow_members)
        ):
            return known
        stage = set_stage(
            scene.data,
            scene.shadows,
            scene.shadow_members,
            mode=self.mode,
            samples=self.samples[0],
            targets=self.targets,
            speakers=self.speakers,
            engine=self.engine,
            seed=self.seed,
            without=tuple(self.without),
        )
        count = int(scene.data.num_nodes)
        found = learn(
            stage,
            samples=self.samples[1:],
            learners={"linear": self.linear, "boosted": self.boosted},
            folds=record_folds(count, folds=1 if self.mode == "online" else min(self.folds, count), seed=self.seed),
            seed=self.seed,
            jobs=self.jobs,
        )
        self.kept_.parameters, self.kept_.found = self._parameters, found  # of one pool only: it holds all its answers
        return found

    def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [nodes] of each simulated target by what was learned without it and its complement; its members."""
        known = self.learned(scene)
        for k, odds in zip(known.stage.plan.targets.tolist(), known.held_out, strict=True):
            yield self._scores(odds, known)[scene.nodes], scene.shadow_members[k, scene.nodes]

    def _scores(self, odds: FloatArray, known: Learned) -> FloatArray:
        """Posteriors by the prior that was asked for in place of the share of members that was learned with."""
        return learned_posterior(with_prior(odds, share=known.share, prior=self.prior))
