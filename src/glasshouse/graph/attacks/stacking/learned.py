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
from glasshouse.attacks.stacking.fitting import CrossFit, cross_fit
from glasshouse.attacks.stacking.learners import Learner
from glasshouse.attacks.stacking.likeness import LARGEST_UNLIKENESS, steadied
from glasshouse.graph.attacks.stacking.answers import PlainAnswers
from glasshouse.graph.attacks.stacking.likeness import PlainLikeness, SampledLikeness
from glasshouse.graph.attacks.stacking.pool_signals import PoolSignals, SampledSignals
from glasshouse.graph.attacks.stacking.untrained import Untrained, best_untrained
from glasshouse.graph.models.model import Model
from glasshouse.randomness import generator, seed_for

__all__ = ["Learned", "Round", "TargetPosterior", "learn"]


class Round(NamedTuple):
    """The posterior learned in one round, and how its simulated targets answered under sampled training sets."""

    fit: CrossFit
    like: SampledLikeness


class TargetPosterior(NamedTuple):
    """The posterior about a target.

    Args:
        odds: [n] log-odds of membership.
        unlikeness: how far its answers are from those of simulated targets, in standard deviations among these.
    """

    odds: FloatArray
    unlikeness: float


class Simulated(NamedTuple):
    """Features [T, n, F] of every simulated target in one round, and how these targets answered."""

    rows: FloatArray
    like: SampledLikeness


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """What was learned from a pool; any number of targets are scored with it.

    Args:
        parameters: those parameters of the attack that affect the learning.
        pool: what the pool answers on its graph.
        samples: training sets drawn in each round after the first, from the posterior of the round before.
        seed: seed of these draws.
        like: how simulated targets answer.
        rounds: the posterior of each round.
    """

    parameters: tuple[object, ...]
    pool: PoolSignals
    samples: tuple[int, ...]
    seed: int
    like: PlainLikeness
    rounds: tuple[Round, ...] = ()

    @property
    def share(self) -> float:
        """The share of members among simulated targets: the prior that the posterior was learned with."""
        return float(self.pool.members[self.pool.plan.targets].mean())

    @cached_property
    def untrained(self) -> Untrained:
        """The simple attack that orders a target unlike the simulated ones; chosen when the first such target comes."""
        return best_untrained(self.pool)

    @property
    def held_out(self) -> FloatArray:
        """[T, n] log-odds of the simulated targets, learned without them and their complements."""
        return self.rounds[-1].fit.held_out

    @property
    def queries(self) -> QueryCount:
        """Queries of all models per node: alone, whole, and under samples (in, out, and the own loss).

        Shared queries are those of simulated targets under their own training sets.
        """
        pool, drawn = self.pool, len(self.pool.masks) + sum(self.samples)
        each = 2 * (1 + len(pool.shadows)) + 3 * drawn * (1 + len(pool.sampled_models))
        asked = sum(np.isin(rows, pool.sampled_models).sum() + 1 for rows in pool.plan.references)
        return QueryCount(float(each), shared=3 * sum(self.samples) * int(asked) * pool.members.shape[1])

    def posterior_of(self, target: Model) -> TargetPosterior:
        """The posterior of every node after the last round, the mean over panels of references.

        A target unlike all simulated ones is judged by the first round only; see `_unlike`.
        """
        pool = self.pool
        plain, sampled = pool.of_target(target)
        unlikeness = self.like.unlikeness(plain)
        if unlikeness > LARGEST_UNLIKENESS:
            return TargetPosterior(self._unlike(plain, sampled), unlikeness)
        odds: list[FloatArray] = []  # of each panel
        for number, (fit, _) in enumerate(self.rounds):
            if number:
                masks = self._masks(np.mean(odds, axis=0), number, "target")
                sampled = pool.under_masks(target, masks, pool.sampled_models)
            signals = [
                pool.target_signals(plain, sampled, panel, odds[at] if odds else None)
                for at, panel in enumerate(self._panels)
            ]
            odds = [fit.log_odds(pool.rows(each)) for each in signals]
        return TargetPosterior(np.asarray(np.mean(odds, axis=0)), unlikeness)

    def _unlike(self, plain: PlainAnswers, sampled: SampledSignals) -> FloatArray:
        """Log-odds [n] of a target that is unlike all simulated ones.

        What was learned holds for answers on the pool's scale, so the target's answers are matched to it. The learner
        that does not extrapolate judges it. An attack that learned nothing has a large part in the order, once by the
        original answers and once by the matched ones.
        """
        pool, (fit, like) = self.pool, self.rounds[0]
        matched = self.like.matched(plain), sampled._replace(target=like.matched(sampled.target))
        rows = [pool.rows(pool.target_signals(*matched, panel)) for panel in self._panels]
        odds = np.mean([fit.log_odds(each, learner=fit.steady) for each in rows], axis=0)
        everyone = np.arange(len(pool.shadows))
        both = [pool.target_signals(*answers, everyone) for answers in ((plain, sampled), matched)]
        return steadied(np.asarray(odds), *[self.untrained.log_odds(signals) for signals in both])

    @property
    def _panels(self) -> list[NDArray[np.intp]]:
        return [panel[:, 0] for panel in self.pool.plan.panels]

    def simulated(self) -> Simulated:
        """Every simulated target in the next round."""
        pool, number = self.pool, len(self.rounds)
        rows, targets = [], []
        for index, k in enumerate(pool.plan.targets.tolist()):
            references = pool.plan.references[index][:, 0]
            plain, sampled = pool.of_shadow(k)
            odds = self.held_out[index] if number else None
            if odds is not None:
                sampled = pool.under_masks(pool.shadows[k], self._masks(odds, number, f"shadow {k}"), references)
            rows.append(pool.rows(pool.target_signals(plain, sampled, references, odds)))
            targets.append(sampled.target)
        return Simulated(np.stack(rows), SampledLikeness.of(targets))

    def _masks(self, odds: FloatArray, number: int, who: str) -> BoolArray:
        """Training sets [M, n] for one round, drawn by log-odds [n]."""
        random = generator(self.seed, "masks", number, who)
        return np.asarray(random.random((self.samples[number - 1], len(odds))) < expit(odds))


def learn(
    pool: PoolSignals,
    *,
    parameters: tuple[object, ...],
    samples: tuple[int, ...],
    learners: Mapping[str, Learner],
    folds: NDArray[np.intp],
    seed: int,
    jobs: int = 1,
) -> Learned:
    """Learn from a pool: every shadow model of its plan plays the target once per round.

    Args:
        pool: what the pool answers on its graph.
        parameters: those parameters of the attack that affect the learning.
        samples: training sets in each round after the first; empty for a single round.
        learners: candidates by name.
        folds: [n] the fold of each node; only one fold online.
        seed: seed of every random choice.
        jobs: number of threads that learn in parallel.
    """
    targets = pool.plan.targets
    like = PlainLikeness.of(PlainAnswers(pool.plain.alone[targets], pool.plain.whole[targets]))
    known = Learned(parameters=parameters, pool=pool, samples=samples, seed=seed, like=like)
    for number in range(1 + len(samples)):
        simulated = known.simulated()
        fit = cross_fit(
            simulated.rows,
            pool.members[targets],
            groups=pool.plan.groups,
            folds=folds,
            learners=learners,
            seed=seed_for(seed, "round", number),
            jobs=jobs,
        )
        known = dataclasses.replace(known, rounds=(*known.rounds, Round(fit, simulated.like)))
    return known
