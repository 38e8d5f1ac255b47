"""Learn a node's posterior of membership from the simulated targets of a pool, in rounds; score targets with it.

Whether a target answers like the simulated ones is looked at query by query; where it does not, an attack that learned
nothing has a part in the order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from glasshouse.attacks import BASE, QueryCount
from glasshouse.attacks.cross_fit import (
    LARGEST_UNLIKENESS,
    CrossFit,
    Likeness,
    Rows,
    clearly_finds,
    count_fits,
    cross_fit,
    steadied,
)
from glasshouse.attacks.learners import Learner
from glasshouse.attacks.prior import prior_weights
from glasshouse.attacks.regressed import record_folds
from glasshouse.compute import is_worth_spreading, spread_in_order
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.numerics import area_under_roc, loss_to_margin, margin_to_loss
from glasshouse.core.progress import open_bar
from glasshouse.core.randomness import generator, seed_for
from glasshouse.evidence import Evidence
from glasshouse.graph.attacks.stacking.features import SampledAnswers, TargetSignals, gbase_odds
from glasshouse.graph.attacks.stacking.pool_signals import PlainAnswers, PoolSignals, SampledSignals, draw_training_sets
from glasshouse.graph.data.checking import labelled_nodes
from glasshouse.graph.scene import Scene


def plain_likeness(plain: PlainAnswers, weights: FloatArray | None = None) -> list[Likeness]:
    """How T simulated targets answer about nodes alone and in the whole graph: losses and weights are [T, n]."""
    return [Likeness.of(loss_to_margin(losses), weights) for losses in plain]


def plain_unlikeness(like: Sequence[Likeness], plain: PlainAnswers) -> float:
    """How far a target's losses, [1, n] each, are from theirs: root mean square over both queries."""
    alone, whole = (one.unlikeness(loss_to_margin(losses[0])) for one, losses in zip(like, plain, strict=True))
    return float(np.hypot(alone, whole) / np.sqrt(2))


def matched_plain(like: Sequence[Likeness], plain: PlainAnswers) -> PlainAnswers:
    """A target's losses, [1, n] each, on their scale."""
    return PlainAnswers(*map(_matched, like, plain))


def matched_samples(
    target: SampledAnswers, simulated: Sequence[SampledAnswers], weights: FloatArray | None = None
) -> SampledAnswers:
    """A target's answers on the scale of those of T simulated targets, [1, M, n] each, sample by sample.

    Matched are the own loss and the gain of the neighbours. With weights [T, n]; all equal by default.
    """
    each = None if weights is None else np.tile(weights, target.own.shape[1])  # [T, M * n]
    own = Likeness.of(np.stack([loss_to_margin(one.own).ravel() for one in simulated]), each)
    gain = Likeness.of(np.stack([(one.own - one.signal).ravel() for one in simulated]), each)
    losses = _matched(own, target.own[0])
    gains = np.stack([gain.matched(row) for row in (target.own - target.signal)[0]])
    return SampledAnswers(losses[None], (losses - gains)[None])


def _matched(like: Likeness, losses: FloatArray) -> FloatArray:
    return np.stack([margin_to_loss(like.matched(loss_to_margin(row))) for row in losses])


@dataclass(frozen=True, kw_only=True)
class Untrained:
    """BASE of the node alone, or G-BASE under the masks that are used for all targets."""

    base: BASE  # its scale tuned to the pool
    neighbours: bool = False  # whether it is G-BASE

    def log_odds(self, signals: TargetSignals) -> FloatArray:
        """Log-odds [n] of a target's nodes."""
        if self.neighbours:
            return np.asarray(gbase_odds(signals, self.base.mode).mean(axis=0))
        return self.base.log_odds(signals.alone)


def best_untrained(pool: PoolSignals) -> Untrained:
    """The better one of the two on simulated targets, by mean AUC."""
    losses = pool.plain.alone[:, pool.at]  # tuning looks only at the pool, so any target can be given
    evidence = Evidence(target_loss=losses[0], shadow_loss=losses, shadow_members=pool.members[:, pool.at])
    base = BASE(mode=pool.attack.mode).tuned(evidence)
    found = [Untrained(base=base), Untrained(base=base, neighbours=True)]
    quality = np.zeros(len(found))
    for k, references in zip(pool.plan.targets.tolist(), pool.plan.references, strict=True):
        signals = pool.target_signals(*pool.of_shadow(k), references[:, 0])
        quality += [area_under_roc(one.log_odds(signals), pool.members[k][pool.at]) for one in found]
    return found[int(quality.argmax())]


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """What was learned from a pool; any number of targets are scored with it."""

    pool: PoolSignals
    rounds: tuple[CrossFit, ...] = ()  # the posterior of each round

    @property
    def parameters(self) -> tuple[object, ...]:
        """Those of the attack that affect the learning."""
        return self.pool.attack._parameters

    @property
    def samples(self) -> tuple[int, ...]:
        """Training sets in each round after the first, from the posterior of the round before."""
        return self.pool.attack.samples[1:]

    @property
    def share(self) -> float:
        """The share of members among simulated targets: the prior that the posterior was learned with."""
        return float(self.pool.members[self.pool.plan.targets][:, labelled_nodes(self.pool.data)].mean())

    @cached_property
    def untrained(self) -> Untrained:
        """The simple attack that orders a target unlike the simulated ones; chosen when the first such target comes."""
        return best_untrained(self.pool)

    @property
    def held_out(self) -> FloatArray:
        """[T, J] log-odds of the simulated targets at asked nodes, learned without them and their complements."""
        return self.rounds[-1].held_out

    @property
    def queries(self) -> QueryCount:
        """Queries of all models per node: alone, whole, and under samples (with the node, and without it).

        Shared queries are those of simulated targets under their own training sets.
        """
        pool, drawn = self.pool, len(self.pool.masks) + sum(self.samples)
        each = 2 * (1 + len(pool.shadows)) + 2 * drawn * (1 + len(pool.sampled_models))
        asked = sum(np.isin(rows, pool.sampled_models).sum() + 1 for rows in pool.plan.references)
        nodes, count = self.held_out.shape[1], pool.members.shape[1]
        plain = 2 * (1 + len(pool.shadows)) * (count - nodes)  # of nodes that are not asked about under samples
        return QueryCount(float(each), shared=2 * sum(self.samples) * int(asked) * nodes + plain)

    def posterior_of(
        self, scene: Scene, prior: float | ArrayLike, *, place: int | None = None
    ) -> tuple[FloatArray, float]:
        """Log-odds [n] about the target after the last round, the mean over panels of references; and its unlikeness.

        That is how far its answers are from those of simulated targets, in standard deviations; these are weighted to
        the ``prior``, the share of members that is expected, one number or one per node. The log-odds are for the
        pool's own `share`. A target unlike all simulated ones is judged by the first round only; see `_unlike`.

        With the ``place`` of a simulated target in the plan, the target is judged as that one is: by its references
        alone and by the predictor that was learned without it.
        """
        pool, panels, group = self.pool, self._panels, None
        if place is not None:
            panels, group = [pool.plan.references[place][:, 0]], int(pool.plan.groups[place])
        plain, sampled = pool.of_target(scene)
        weights = prior_weights(pool.members[pool.plan.targets], prior)
        like = plain_likeness(PlainAnswers(*(losses[pool.plan.targets] for losses in pool.plain)), weights)
        unlikeness = plain_unlikeness(like, plain)
        if unlikeness > LARGEST_UNLIKENESS:
            answers = [pool.of_shadow(k)[1].target for k in pool.plan.targets.tolist()]
            moved = sampled._replace(target=matched_samples(sampled.target, answers, weights[:, pool.at]))
            found = self._unlike((plain, sampled), (matched_plain(like, plain), moved))
            return pool.everywhere(found, plain, self._everyone), unlikeness
        asked = self._everyone if place is None else panels[0]
        known = pool.plain_features([(plain, panel) for panel in panels])
        odds: list[FloatArray] = []  # of each panel
        for number, fit in enumerate(self.rounds):
            if number:
                chances = pool.everywhere(np.asarray(np.mean(odds, axis=0)), plain, asked)
                masks = self._masks(chances, number, "target")
                sampled = pool.under_masks(scene.profiled()[0], masks, np.intersect1d(asked, pool.sampled_models))
            signals = [
                pool.target_signals(plain, sampled, panel, odds[at] if odds else None, known[at])
                for at, panel in enumerate(panels)
            ]
            odds = [fit.log_odds(pool.rows(each), group=group) for each in signals]
        return pool.everywhere(np.asarray(np.mean(odds, axis=0)), plain, asked), unlikeness

    @property
    def _everyone(self) -> NDArray[np.intp]:
        return np.arange(len(self.pool.shadows))

    def _unlike(
        self, given: tuple[PlainAnswers, SampledSignals], matched: tuple[PlainAnswers, SampledSignals]
    ) -> FloatArray:
        """Log-odds [J] of a target that is unlike all simulated ones.

        What was learned holds for answers on the pool's scale, so the target's answers are matched to it. The learner
        that does not extrapolate judges it. An attack that learned nothing has a large part in the order, once by the
        original answers and once by the matched ones.
        """
        pool, fit = self.pool, self.rounds[0]
        rows = [pool.rows(pool.target_signals(*matched, panel)) for panel in self._panels]
        odds = np.mean([fit.log_odds(each, learner=fit.steady) for each in rows], axis=0)
        both = [pool.target_signals(*answers, self._everyone) for answers in (given, matched)]
        return steadied(np.asarray(odds), *[self.untrained.log_odds(signals) for signals in both])

    @property
    def _panels(self) -> list[NDArray[np.intp]]:
        """Sets of references for the target; one if no members are clearly found.

        A mean over panels varies less than the scores of simulated targets, which matters if nothing else does.
        """
        clear = clearly_finds(self.rounds[0].held_out, self.pool.members[self.pool.plan.targets][:, self.pool.at])
        return [panel[:, 0] for panel in self.pool.plan.panels[: None if clear else 1]]

    def simulated(self, done: Callable[[int], None] | None = None) -> FloatArray:
        """Features [T, J, F] of every simulated target in the next round; ``done`` is called after each."""
        pool, number = self.pool, len(self.rounds)
        _ = pool.shadow_features  # of all targets at once, and before they are shared out
        tasks = [_Task(index) for index in range(len(pool.plan.targets))]
        expected = 0.0
        if number:
            for index, k in enumerate(pool.plan.targets.tolist()):
                odds = self.held_out[index]
                chances = pool.everywhere(odds, pool.of_shadow(k)[0], pool.plan.references[index][:, 0])
                masks = self._masks(chances, number, f"shadow {k}")
                tasks[index] = _Task(index, odds, masks)
            expected = pool.seconds_under(masks) if is_worth_spreading() else 0.0
        # a prediction that falls short is not trusted: the first target is then asked here, and measured
        seconds = expected if is_worth_spreading(expected) else None
        rows = []
        for found in spread_in_order(_simulated_rows, (pool,), tasks, seconds=seconds):
            rows.append(found)
            if done is not None:
                done(1)
        return np.stack(rows)

    def _masks(self, odds: FloatArray, number: int, who: str) -> BoolArray:
        """Training sets [M, n] for one round, drawn by log-odds [n]."""
        random = generator(self.pool.attack.seed, "masks", number, who)
        return draw_training_sets(np.asarray(expit(odds)), samples=self.samples[number - 1], random=random)


class _Task(NamedTuple):
    """A simulated target: its place in the plan; after the first round its log-odds [n] and training sets [M, n]."""

    place: int
    odds: FloatArray | None = None
    masks: BoolArray | None = None


def _simulated_rows(pool: PoolSignals, task: _Task) -> FloatArray:
    """Features [J, F] of one simulated target."""
    place, odds, masks = task
    k, references = int(pool.plan.targets[place]), pool.plan.references[place][:, 0]
    plain, sampled = pool.of_shadow(k)
    if masks is not None:
        sampled = pool.under_masks(pool.shadows[k], masks, references)
    return pool.rows(pool.target_signals(plain, sampled, references, odds, pool.shadow_features[place]))


def learn(pool: PoolSignals) -> Learned:
    """Learn from a pool: every shadow model of its plan plays the target once per round."""
    targets, groups, attack = pool.plan.targets, pool.plan.groups, pool.attack
    folds = record_folds(pool.members.shape[1], mode=attack.mode, folds=attack.folds, seed=attack.seed)[pool.at]
    known = Learned(pool=pool)
    # rounds before the last only draw training sets, so their learners may be quicker
    early: dict[str, Learner] = {"linear": attack.linear, "network": attack.early}
    rounds = [*[early] * len(known.samples), attack._learners]
    total = sum(len(targets) + count_fits(groups, folds, list(each)) for each in rounds)
    with open_bar(total=total, label="Learning from simulated targets", unit="steps") as done:
        for number, each in enumerate(rounds):
            rows = known.simulated(done)
            fit = cross_fit(
                _looked_up(rows),
                pool.members[targets][:, pool.at],
                groups=groups,
                folds=folds,
                learners=each,
                seed=seed_for(attack.seed, "round", number),
                jobs=attack.jobs,
                done=done,
            )
            known = dataclasses.replace(known, rounds=(*known.rounds, fit))
    return known


def _looked_up(rows: FloatArray) -> Rows:
    """Rows [T, J, F] that are all kept."""
    return lambda target, records: rows[target, records]
