"""Learn a node's posterior of membership from the simulated targets of a pool, in rounds; score targets with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks import QueryCount
from glasshouse.attacks.stacking import LARGEST_UNLIKENESS, CrossFit, Learner, cross_fit, steadied
from glasshouse.graph.attacks.stacking.answers import Heard, hear, sample_signals
from glasshouse.graph.attacks.stacking.likeness import HeardLikeness, SampledLikeness
from glasshouse.graph.attacks.stacking.plain import Plain, plain_of
from glasshouse.graph.attacks.stacking.stage import Stage, Told
from glasshouse.graph.models.model import Model
from glasshouse.randomness import generator, seed_for

__all__ = ["Learned", "Opinion", "Round", "learn"]


class Round(NamedTuple):
    """The posterior learned in one round, and how its simulated targets answered under sampled training sets."""

    fit: CrossFit
    like: SampledLikeness


class Opinion(NamedTuple):
    """Log-odds [n] of membership, and how unlike simulated targets the target answers, in standard deviations."""

    odds: FloatArray
    mismatch: float


class Simulated(NamedTuple):
    """Features [T, n, F] of every simulated target in one round, and how these answered."""

    rows: FloatArray
    like: SampledLikeness


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """What was learned from a pool; any number of targets are scored with it.

    Args:
        stage: the pool on its graph.
        samples: training sets drawn in each round after the first, from the posterior of the round before.
        seed: of these draws.
        like: how simulated targets answer.
        rounds: the posterior of each round.
    """

    stage: Stage
    samples: tuple[int, ...]
    seed: int
    like: HeardLikeness
    rounds: tuple[Round, ...] = ()

    @property
    def share(self) -> float:
        """The share of members among simulated targets: the prior that the posterior was learned with."""
        return float(self.stage.members[self.stage.plan.targets].mean())

    @cached_property
    def plain(self) -> Plain:
        """What steadies the judgement of a target unlike the simulated ones; found when the first of these comes."""
        return plain_of(self.stage)

    @property
    def held_out(self) -> FloatArray:
        """[T, n] log-odds of the simulated targets, learned without them and their complements."""
        return self.rounds[-1].fit.held_out

    @property
    def queries(self) -> QueryCount:
        """All models about each node, alone, whole, and under samples (in, out, and the own loss); and what is shared.

        Shared is what simulated targets ask under training sets of their own.
        """
        speaking, count = len(self.stage.speakers), self.stage.members.shape[1]
        drawn = len(self.stage.masks) + sum(self.samples)
        each = 2 * (1 + len(self.stage.shadows)) + 3 * drawn * (1 + speaking)
        references = sum(np.isin(rows, self.stage.speakers).sum() + 1 for rows in self.stage.plan.references)
        return QueryCount(float(each), shared=3 * sum(self.samples) * int(references) * count)

    def opinion(self, target: Model) -> Opinion:
        """What is believed of every node after the last round, the mean over panels of references.

        A target that is unlike all simulated ones is judged in the first round; see `_strange`.
        """
        stage = self.stage
        heard = hear([target], stage.data)
        told = Told(sample_signals([target], stage.data, stage.masks, engine=stage.engine), stage.speakers, stage.said)
        mismatch = self.like.distance(heard)
        if mismatch > LARGEST_UNLIKENESS:
            return Opinion(self._strange(heard, told), mismatch)
        odds: list[FloatArray] = []
        for number, (fit, _) in enumerate(self.rounds):
            if number:
                told = stage.told(target, self._masks(np.mean(odds, axis=0), number, "target"), stage.speakers)
            views = [stage.view(heard, told, p, odds[at] if odds else None) for at, p in enumerate(self._panels)]
            odds = [fit.log_odds(stage.rows(view)) for view in views]
        return Opinion(np.asarray(np.mean(odds, axis=0)), mismatch)

    def _strange(self, heard: Heard, told: Told) -> FloatArray:
        """Log-odds [n] of a target that is unlike all simulated ones.

        What was learned speaks of answers on the pool's scale, so they are matched to it; the learner that does not
        extrapolate judges; and an attack that learned nothing has a large say in the order, of the answers as they are
        and of the matched ones.
        """
        fit, like = self.rounds[0]
        matched = self.like.matched(heard), told._replace(target=like.matched(told.target))
        rows = [self.stage.rows(self.stage.view(*matched, panel)) for panel in self._panels]
        odds = np.mean([fit.log_odds(each, learner=fit.steady) for each in rows], axis=0)
        everyone = np.arange(len(self.stage.shadows))
        views = [self.stage.view(*answers, everyone) for answers in ((heard, told), matched)]
        return steadied(np.asarray(odds), *[self.plain.log_odds(view) for view in views])

    @property
    def _panels(self) -> list[NDArray[np.intp]]:
        return [panel[:, 0] for panel in self.stage.plan.panels]

    def simulated(self) -> Simulated:
        """Every simulated target in the next round."""
        stage, number = self.stage, len(self.rounds)
        rows, targets = [], []
        for index, k in enumerate(stage.plan.targets.tolist()):
            references = stage.plan.references[index][:, 0]
            heard, told = stage.of_shadow(k)
            odds = self.held_out[index] if number else None
            if odds is not None:
                told = stage.told(stage.shadows[k], self._masks(odds, number, f"shadow {k}"), references)
            rows.append(stage.rows(stage.view(heard, told, references, odds)))
            targets.append(told.target)
        return Simulated(np.stack(rows), SampledLikeness.of(targets))

    def _masks(self, odds: FloatArray, number: int, who: str) -> BoolArray:
        random = generator(self.seed, "masks", number, who)
        return np.asarray(random.random((self.samples[number - 1], len(odds))) < expit(odds))


def learn(
    stage: Stage,
    *,
    samples: tuple[int, ...],
    learners: Mapping[str, Learner],
    folds: NDArray[np.intp],
    seed: int,
    jobs: int = 1,
) -> Learned:
    """Learn from a pool: every shadow model of its plan plays the target once a round.

    Args:
        stage: the pool on its graph.
        samples: training sets in each round after the first; empty for a single round.
        learners: candidates by name.
        folds: [n] of the nodes; a single one online.
        seed: of every random choice.
        jobs: threads that learn side by side.
    """
    targets = stage.plan.targets
    like = HeardLikeness.of(Heard(stage.heard.alone[targets], stage.heard.whole[targets]))
    known = Learned(stage=stage, samples=samples, seed=seed, like=like)
    for number in range(1 + len(samples)):
        simulated = known.simulated()
        fit = cross_fit(
            simulated.rows,
            stage.members[targets],
            groups=stage.plan.groups,
            folds=folds,
            learners=learners,
            seed=seed_for(seed, "round", number),
            jobs=jobs,
        )
        known = dataclasses.replace(known, rounds=(*known.rounds, Round(fit, simulated.like)))
    return known
