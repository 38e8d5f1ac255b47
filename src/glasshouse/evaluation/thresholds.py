"""Thresholds from simulated targets, never from the target's own membership (paper, App. C), and what they flag.

How many flagged records are members; and which can be flagged with a stated share of errors, without members.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import betabinom
from scipy.stats import t as student

from glasshouse.attacks.attack import Attack, View
from glasshouse.attacks.in_out_moments import sets_at_once
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.progress import track
from glasshouse.core.threads import side_by_side
from glasshouse.evaluation.intervals import Interval, clopper_pearson
from glasshouse.evaluation.privacy.bounds import shares_right
from glasshouse.evaluation.roc import SortedScores, allowed_wrong, checked

Pair = tuple[FloatArray, BoolArray]  # scores [N] and members [N] of a simulated target
Scored = Iterable[Pair]  # of each; some are made anew whenever they are asked for
Found = TypeVar("Found")
_MARGIN, _KEPT = 4, 50_000  # scores of non-members: times those above a wanted rate, and at least


class NotSimulatedError(InputError):
    """Why an attack cannot score the simulated targets of a pool."""


@contextmanager
def simulating() -> Iterator[None]:
    """Around what an attack does with simulated targets, apart from what is done with their scores."""
    try:
        yield
    except InputError as error:
        raise NotSimulatedError(*error.faults) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """Every simulated target, scored by an attack that is tuned for the pool, anew for each look at all of them.

    Together the scores would be as large as the losses.
    """

    attack: Attack[Any]
    view: Any
    progress: bool | None = False

    def __iter__(self) -> Iterator[Pair]:
        label = f"Simulated targets of {self.attack.name}"
        targets = len(self.view.shadow_members)
        with simulating():
            every = self.attack.simulated_scores(self.view)
            yield from track(every, total=targets, label=label, unit="targets", show=self.progress)


def of_each(look: Callable[[Pair], Found], scored: Scored) -> list[Found]:
    """What a look finds at each simulated target; of many records few targets are in memory at once."""
    found, targets = list[Found](), iter(scored)
    for first in targets:
        records = len(first[0])
        some = [first, *islice(targets, 2 * sets_at_once(records) - 1)]
        del first
        found += side_by_side(look, some, records=records)
        some.clear()  # before the next are made
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedSummary:
    """An attack on one simulated target. Its curve would take three times the memory of its scores."""

    auc: float  # area under the ROC
    rates: tuple[float, ...]  # TPR at each wanted rate, with ties broken at random where they must be
    reached: tuple[bool, ...]  # for each wanted rate, whether a threshold reaches it
    cuts: tuple[float, ...]  # for each wanted rate, the lowest score that keeps it
    first_fpr: float  # the smallest false-positive rate that any threshold reaches
    shares_right: tuple[float, ...]  # shares of right guesses, for each way to guess that a bound on ε may use
    highest: FloatArray  # [H] the highest scores of non-members, rising: more than the wanted rates allow
    non_members: int  # how many there are

    @classmethod
    def of(cls, pair: Pair, fprs: Sequence[float]) -> SimulatedSummary:
        """From the scores and members of the target, at the wanted rates."""
        values, mask = checked(*pair)
        ordered = SortedScores.of(values, mask)
        rates, outside = [ordered.rate_at(fpr) for fpr in fprs], ordered.outside
        kept = max(_KEPT, _MARGIN * allowed_wrong(max(fprs, default=0.0), len(outside)))
        return cls(
            auc=ordered.area,
            rates=tuple(rate for rate, _ in rates),
            reached=tuple(reached for _, reached in rates),
            cuts=tuple(ordered.cut_at(fpr) for fpr in fprs),
            first_fpr=ordered.first_fpr,
            shares_right=shares_right(values, mask, ordered=ordered),
            highest=outside[-kept:].copy(),
            non_members=len(outside),
        )

    def false_alarms(self, cut: float) -> int | None:
        """How many non-members score at least this; None if that are more than are kept."""
        if len(self.highest) < self.non_members and self.highest[0] >= cut:
            return None
        return len(self.highest) - int(np.searchsorted(self.highest, cut))


def simulated_summaries(scored: Scored, fprs: Sequence[float]) -> list[SimulatedSummary]:
    """Each simulated target in a few numbers, on all cores."""
    return of_each(lambda pair: SimulatedSummary.of(pair, fprs), scored)


ThresholdRule = Literal["mean", "max"]


@dataclass(frozen=True)
class Threshold:
    """From which score on records are flagged, and the expected false-positive rate."""

    wanted: float  # the false-positive rate aimed at
    value: float  # records that score at least this are flagged
    rule: ThresholdRule  # the mean of the simulated targets' own thresholds, or their maximum, which is more careful
    expected_fpr: float  # mean rate over simulated targets, each with the threshold of all the others
    interval: Interval  # where the rate on one more target is expected to lie (a prediction interval)
    simulated: int  # how many targets were simulated
    first: bool = False  # whether it aims at the first rate that can be reached: ties prevent all wanted rates

    def decide(self, scores: FloatArray) -> BoolArray:
        """Which records are flagged, [N], by their `Attack.flag_scores` [N]."""
        return scores >= self.value


def estimate_thresholds(
    attack: Attack[Any],
    view: View,
    fprs: Sequence[float],
    *,
    threshold: ThresholdRule = "mean",
    confidence: float = 0.95,
    progress: bool | None = False,
) -> tuple[Threshold, ...]:
    """Attack every simulated target of the pool once, and derive a threshold for each wanted rate.

    It judges `Attack.flag_scores` of the target, which come from as many references as those of simulated targets.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> from glasshouse.evidence import Evidence
        >>> rng = np.random.default_rng(0)
        >>> members = np.repeat(np.tile([[1, 0], [0, 1]], (2, 1)), 100, axis=1).astype(bool)
        >>> loss = rng.exponential(np.where(members, 0.5, 1.0))
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> threshold, = estimate_thresholds(LossThreshold(), evidence, [0.05])
        >>> 0.01 < threshold.expected_fpr < 0.1
        True
    """
    attack = attack.tuned(view)  # a threshold belongs to one setting
    scored = Simulation(attack=attack, view=view, progress=progress)
    return thresholds_from(scored, fprs, threshold=threshold, confidence=confidence)


def thresholds_from(
    scored: Scored,
    fprs: Sequence[float],
    *,
    threshold: ThresholdRule = "mean",
    confidence: float = 0.95,
    non_members: float | None = None,
    summaries: Sequence[SimulatedSummary] | None = None,
) -> tuple[Threshold, ...]:
    """A threshold for each wanted rate that can be reached despite ties; if none can, one for the first that can."""
    options: dict[str, Any] = {"threshold": threshold, "confidence": confidence, "non_members": non_members}
    summaries = simulated_summaries(scored, fprs) if summaries is None else summaries
    found = [
        threshold_from(scored, fpr, summaries=summaries, place=place, **options)
        for place, fpr in enumerate(fprs)
        if any(one.reached[place] for one in summaries)
    ]
    if fprs and not found:
        first = max(one.first_fpr for one in summaries)
        found.append(dataclasses.replace(threshold_from(scored, first, **options), first=True))
    return tuple(found)


def threshold_from(
    scored: Scored,
    fpr: float,
    *,
    summaries: Sequence[SimulatedSummary] | None = None,
    place: int = 0,
    threshold: ThresholdRule = "mean",
    confidence: float = 0.95,
    non_members: float | None = None,
) -> Threshold:
    """A threshold from simulated targets; ``summaries`` have the rate at this ``place``, if they are known."""
    summaries = simulated_summaries(scored, [fpr]) if summaries is None else summaries
    own = np.array([one.cuts[place] for one in summaries])
    cuts = [_agreed(np.delete(own, at), threshold) for at in range(len(own))]
    counts = [one.false_alarms(cut) for one, cut in zip(summaries, cuts, strict=True)]
    if None in counts:  # the targets differ much: all of their scores are needed once more
        pairs = zip(scored, cuts, strict=True)
        counts = [int(np.count_nonzero((scores >= cut) > members)) for (scores, members), cut in pairs]
    false, others = np.array(counts), np.array([one.non_members for one in summaries])
    return Threshold(
        wanted=fpr,
        value=_agreed(own, threshold),
        rule=threshold,
        expected_fpr=float(np.mean(false / others)),
        interval=predicted_rate(false, others, confidence=confidence, non_members=non_members),
        simulated=len(summaries),
    )


def predicted_rate(
    false: IntArray, others: IntArray, *, confidence: float = 0.95, non_members: float | None = None
) -> Interval:
    """Where the rate of one more target is expected, from false positives and non-members of simulated ones, [T] each.

    The hull of two prediction intervals: Student's, for targets that differ by more than chance, and the beta-binomial
    one (Jeffreys' prior), for a few false positives. The fewer non-members of its own, the more its rate varies.
    """
    rates, count, tail = false / others, len(false), (1 - confidence) / 2
    mean, usual = float(rates.mean()), float(others.mean())
    asked = usual if non_members is None else non_members
    fewer = mean * (1 - mean) * max(1 / asked - 1 / usual, 0.0)  # variance that only the target's rate has
    spread = np.sqrt(float(np.var(rates, ddof=1)) * (1 + 1 / count) + fewer)
    reach = float(student.ppf(1 - tail, count - 1)) * spread
    asked = max(round(asked), 1)
    alike = betabinom(asked, false.sum() + 0.5, (others - false).sum() + 0.5)
    low = min(mean - reach, float(alike.ppf(tail)) / asked)
    high = max(mean + reach, float(alike.ppf(1 - tail)) / asked)
    return Interval(max(0.0, low), min(1.0, high))


def _agreed(thresholds: FloatArray, rule: ThresholdRule) -> float:
    return float(thresholds.max() if rule == "max" else thresholds.mean())


@dataclass(frozen=True, kw_only=True)
class SimulatedFigures:
    """How strong an attack is on the simulated targets of a pool: a choice by it does not use the target."""

    targets: int  # how many shadow models played the target
    auc: float  # mean area under their ROC curves
    strengths: tuple[float, ...]  # mean TPR at each wanted rate, with ties broken at random where they must be
    shares_right: tuple[float, ...] = ()  # mean share of right guesses for each way to guess that a bound on ε may use


def simulated_figures(summaries: Sequence[SimulatedSummary]) -> SimulatedFigures:
    """The figures of an attack from its `simulated_summaries`."""
    return SimulatedFigures(
        targets=len(summaries),
        auc=float(np.mean([one.auc for one in summaries])),
        strengths=tuple(float(np.mean(rates)) for rates in zip(*(one.rates for one in summaries), strict=True)),
        shares_right=tuple(np.mean([one.shares_right for one in summaries], axis=0).tolist()),
    )


def rate_with_ties(scores: FloatArray, members: BoolArray, fpr: float) -> tuple[float, bool]:
    """TPR at a rate, and whether a threshold reaches it; if not, the TPR there when ties are broken at random."""
    return SortedScores.of(*checked(scores, members)).rate_at(fpr)


PRIORS = (0.01, 0.1, 0.5)  # shares of members among the people that one asks about


@dataclass(frozen=True)
class Precision:
    """The share of members among the flagged, if a share ``prior`` of those one asks about are members."""

    prior: float  # the share of members
    value: float | None  # π·TPR / (π·TPR + (1-π)·FPR); None if no record is flagged
    interval: Interval  # of the value


@dataclass(frozen=True)
class FlaggedRates:
    """What happens if every record above a threshold, which comes from simulated targets, is flagged."""

    wanted: float  # the false-positive rate that the threshold aims at
    tpr: float  # share of the members that are flagged
    tpr_interval: Interval  # Clopper-Pearson
    fpr: float  # share of the non-members that are flagged
    fpr_interval: Interval  # Clopper-Pearson
    advantage: float  # TPR - FPR
    advantage_interval: Interval  # of it
    precisions: tuple[Precision, ...]  # the share of members among the flagged, one for each of `PRIORS`


def flagged_rates(threshold: Threshold, flagged: BoolArray, members: BoolArray) -> FlaggedRates:
    """Rates, advantage and precision of a threshold that was chosen without the target's members."""
    hits, wrong = int(flagged[members].sum()), int(flagged[~members].sum())
    inside, outside = int(members.sum()), int((~members).sum())
    tpr, fpr = hits / inside, wrong / outside
    tpr_interval, fpr_interval = clopper_pearson(hits, inside), clopper_pearson(wrong, outside)
    ratio = _ratio_interval(hits, inside, wrong, outside)
    precisions = tuple(
        Precision(
            prior,
            precision_at(prior, fpr / tpr) if hits else (0.0 if wrong else None),
            Interval(precision_at(prior, ratio.high), precision_at(prior, ratio.low)),
        )
        for prior in PRIORS
    )
    advantage = _difference_interval(tpr, tpr_interval, fpr, fpr_interval)
    return FlaggedRates(threshold.wanted, tpr, tpr_interval, fpr, fpr_interval, tpr - fpr, advantage, precisions)


def precision_at(prior: float, ratio: float) -> float:
    """Share of members among the flagged, from a prior and FPR / TPR, in which it falls."""
    return prior / (prior + (1 - prior) * ratio)


def _difference_interval(first: float, one: Interval, second: float, other: Interval) -> Interval:
    """The interval of a difference from those of its parts (Newcombe 1998, method 10, here with exact intervals)."""
    difference = first - second
    low = difference - math.hypot(first - one.low, other.high - second)
    high = difference + math.hypot(one.high - first, second - other.low)
    return Interval(max(-1.0, low), min(1.0, high))


def _ratio_interval(hits: int, inside: int, wrong: int, outside: int) -> Interval:
    """The interval of FPR / TPR: squares of distances add as for a difference, on the logarithmic scale.

    If nobody, or no member, was flagged, the rectangle of both intervals is used, each with half of the allowed error.
    """
    each = 0.95 if hits and wrong else (1 + 0.95) / 2
    upper, lower = clopper_pearson(wrong, outside, confidence=each), clopper_pearson(hits, inside, confidence=each)
    if hits and wrong:
        fpr, tpr = wrong / outside, hits / inside
        down = math.hypot(math.log(fpr / upper.low), math.log(lower.high / tpr))
        up = math.hypot(math.log(upper.high / fpr), math.log(tpr / lower.low))
        return Interval(fpr / tpr * math.exp(-down), fpr / tpr * math.exp(up))
    return Interval(upper.low / lower.high, upper.high / lower.low if lower.low else math.inf)


DISCOVERY_LEVEL = 0.1  # the share of wrongly flagged records that a report allows


class ConformalCounts:
    """How many simulated non-members reach each of the scores [N] of a target, counted target by target."""

    def __init__(self, scores: FloatArray) -> None:
        self._scores, self._asked, self._count, self._lock = scores, np.sort(scores), 0, Lock()
        self._ending = np.zeros(len(scores) + 1, dtype=np.int64)  # how many reach exactly so many of these scores

    def add(self, pair: Pair) -> None:
        """Count those of one more simulated target."""
        others = np.sort(pair[0][~pair[1]])  # sorted: the next search then starts in what the cache still holds
        found = np.bincount(np.searchsorted(self._asked, others, side="right"), minlength=len(self._ending))
        with self._lock:  # one sum for all, so that no [K, N] copy is made; whole numbers add up in any order
            self._ending += found
            self._count += len(others)

    def p_values(self) -> FloatArray:
        """[N] how rare each score would be for a non-member: (1 + #{simulated non-members ≥ s}) / (1 + #).

        The calibration sample is that of all simulated targets (Bates, Candès, Lei, Romano, Sesia 2023).
        """
        levels = np.empty(len(self._scores))
        levels[np.argsort(self._scores)] = (1 + self._count - np.cumsum(self._ending)[:-1]) / (1 + self._count)
        return levels


def conformal_p_values(scores: FloatArray, scored: Scored) -> FloatArray:
    """[N] the `ConformalCounts.p_values` of a target's scores by all simulated targets."""
    counts = ConformalCounts(scores)
    of_each(counts.add, scored)
    return counts.p_values()


def discovery_levels(p_values: ArrayLike, *, prior: float = 0.0) -> FloatArray:
    """[N] the smallest false-discovery rate at which each record is flagged (Benjamini and Hochberg 1995).

    Only non-members can be flagged wrongly, and they are a share 1 - λ of the records, for the stated prior λ. If fewer
    are members, λ' < λ, up to (1 - λ') / (1 - λ) times the stated rate is wrong; if more are, less.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    raised = (1 - prior) * values[order] * len(values) / np.arange(1, len(values) + 1)
    levels = np.empty(len(values))
    levels[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return levels
