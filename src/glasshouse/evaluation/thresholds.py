"""Thresholds from simulated targets, never from the target's own membership (paper, App. C), and what they flag.

How many flagged records are members; and which can be flagged with a stated share of errors, without members.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import betabinom
from scipy.stats import t as student

from glasshouse.attacks.attack import Attack, View
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.progress import track
from glasshouse.core.threads import side_by_side
from glasshouse.evaluation.intervals import Interval, clopper_pearson
from glasshouse.evaluation.privacy.bounds import shares_right
from glasshouse.evaluation.roc import SortedScores, checked

Scored = Sequence[tuple[FloatArray, BoolArray]]  # scores [N] and members [N] of each simulated target


@dataclass(frozen=True, kw_only=True)
class SimulatedSummary:
    """An attack on one simulated target. Its curve would take three times the memory of its scores."""

    auc: float  # area under the ROC
    rates: tuple[float, ...]  # TPR at each wanted rate, with ties broken at random where they must be
    reached: tuple[bool, ...]  # for each wanted rate, whether a threshold reaches it
    cuts: tuple[float, ...]  # for each wanted rate, the lowest score that keeps it
    first_fpr: float  # the smallest false-positive rate that any threshold reaches
    shares_right: tuple[float, ...]  # shares of right guesses, for each way to guess that a bound on ε may use


def simulated_summaries(scored: Scored, fprs: Sequence[float]) -> list[SimulatedSummary]:
    """Each simulated target in a few numbers, on all cores."""

    def summary(pair: tuple[FloatArray, BoolArray]) -> SimulatedSummary:
        values, mask = checked(*pair)
        ordered = SortedScores.of(values, mask)
        rates = [ordered.rate_at(fpr) for fpr in fprs]
        return SimulatedSummary(
            auc=ordered.area,
            rates=tuple(rate for rate, _ in rates),
            reached=tuple(reached for _, reached in rates),
            cuts=tuple(ordered.cut_at(fpr) for fpr in fprs),
            first_fpr=ordered.first_fpr,
            shares_right=shares_right(values, mask, ordered=ordered),
        )

    return side_by_side(summary, scored, records=len(scored[0][0]) if len(scored) else 0)


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
    return thresholds_from(simulate(attack, view, progress=progress), fprs, threshold=threshold, confidence=confidence)


def simulate(attack: Attack[Any], view: View, *, progress: bool | None = False) -> Scored:
    """Scores [N] and members [N] of every simulated target, by an attack that is tuned for the pool."""
    targets, label = len(view.shadow_members), f"Simulated targets of {attack.name}"
    every = track(attack.simulated_scores(view), total=targets, label=label, unit="targets", show=progress)
    whole, found = np.empty((0, 0)), list[tuple[FloatArray, BoolArray]]()
    for scores, members in every:
        if not found:  # one array, which goes back to the system as a whole when it is not needed any more
            whole = np.empty((targets, len(scores)))
        if len(found) < targets:
            whole[len(found)] = scores
            scores = whole[len(found)]
        found.append((scores, members))
    return found


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
        threshold_from(scored, fpr, own=np.array([one.cuts[place] for one in summaries]), **options)
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
    own: FloatArray | None = None,
    threshold: ThresholdRule = "mean",
    confidence: float = 0.95,
    non_members: float | None = None,
) -> Threshold:
    """A threshold from simulated targets that are scored already; ``own`` are their thresholds [T], if known."""
    if own is None:
        own = np.array([SortedScores.of(*checked(*pair)).cut_at(fpr) for pair in scored])

    def false_alarms(at: int) -> int:
        scores, members = scored[at]
        return int(np.count_nonzero((scores >= _agreed(np.delete(own, at), threshold)) > members))

    false = np.array(side_by_side(false_alarms, range(len(own)), records=len(scored[0][0])))
    others = np.array([len(members) - np.count_nonzero(members) for _, members in scored])
    return Threshold(
        wanted=fpr,
        value=_agreed(own, threshold),
        rule=threshold,
        expected_fpr=float(np.mean(false / others)),
        interval=predicted_rate(false, others, confidence=confidence, non_members=non_members),
        simulated=len(scored),
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


def conformal_p_values(scores: FloatArray, scored: Scored) -> FloatArray:
    """[N] how rare each score would be for a non-member: (1 + #{simulated non-members ≥ s}) / (1 + #).

    The calibration sample is that of all simulated targets (Bates, Candès, Lei, Romano, Sesia 2023).
    """
    order = np.argsort(scores)
    asked = scores[order]
    ending = np.zeros(len(scores) + 1, dtype=np.int64)  # how many non-members reach exactly so many of these scores

    def of_target(pair: tuple[FloatArray, BoolArray]) -> int:
        others = np.sort(pair[0][~pair[1]])  # sorted: the next search then starts in what the cache still holds
        found = np.bincount(np.searchsorted(asked, others, side="right"), minlength=len(ending))
        with lock:  # one sum for all, so that no [K, N] copy is made; whole numbers add up in any order
            np.add(ending, found, out=ending)
        return len(others)

    lock = Lock()
    count = sum(side_by_side(of_target, scored, records=len(scores)))
    levels = np.empty(len(scores))
    levels[order] = (1 + count - np.cumsum(ending)[:-1]) / (1 + count)
    return levels


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
