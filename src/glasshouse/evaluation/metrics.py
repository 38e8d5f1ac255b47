"""The figures of one attack against one target, each with its interval, and their mean over several targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from scipy.stats import norm
from scipy.stats import t as student

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.data.design import Draw
from glasshouse.evaluation.intervals import (
    Interval,
    balanced_accuracy_interval,
    clopper_pearson,
    delong,
    logit_interval,
    placements,
    tpr_estimates,
    tpr_intervals,
)
from glasshouse.evaluation.roc import ROC, allowed_wrong, auc, checked, roc

DEFAULT_FPRS = (0.01, 0.001)
ENOUGH_WRONG = 10  # a rate that rests on fewer non-members has an interval too wide for a verdict


class FirstRate(NamedTuple):
    """The smallest false-positive rate that any threshold reaches, and the true-positive rate there."""

    fpr: float
    tpr: float
    interval: Interval


class Rate(NamedTuple):
    """A true-positive rate at a wanted false-positive rate.

    If more than a share ``wanted`` of the non-members have the highest score, no threshold reaches it: all three rates
    are then 0, which is not a measurement.
    """

    wanted: float  # the wanted false-positive rate
    fpr: float  # the sample's largest achievable rate not above it
    tpr: float  # the sample's rate there: with few allowed false positives it is too high (`tpr_estimates`)
    interval: Interval  # of the true-positive rate at the true threshold
    threshold: float  # where it is reached on the target itself, which only an evaluator knows
    allowed: int  # how many of the non-members may be wrongly flagged
    estimate: float  # of the true-positive rate at the true threshold, median-unbiased: what reports show
    first: FirstRate | None = None  # the first rate that can be reached, if the wanted one cannot


@dataclass(frozen=True, eq=False)
class Metrics:
    """How well an attack tells members from others."""

    auc: float  # area under the ROC
    auc_interval: Interval  # DeLong interval of the AUC
    balanced_accuracy: float  # the best mean of true-positive and true-negative rate over all thresholds
    balanced_accuracy_interval: Interval  # of the best over all thresholds; the sample's best is too high on average
    rates: tuple[Rate, ...]  # a `Rate` for each wanted FPR
    confidence: float  # of the intervals
    scores: FloatArray = field(repr=False)  # [N] what was evaluated
    members: BoolArray = field(repr=False)  # [N] against whom

    @property
    def curve(self) -> ROC:
        """The whole ROC, which is not kept: its points take three times the memory of the scores."""
        return roc(self.scores, self.members)


def evaluate(
    scores: ArrayLike,
    members: ArrayLike,
    *,
    fprs: Sequence[float] | None = None,
    confidence: float = 0.95,
    draw: Draw | None = None,
    units: bool = False,
) -> Metrics:
    """Evaluate scores [N] against true membership [N].

    Args:
        scores: higher means member.
        members: the true members of the target.
        fprs: wanted false-positive rates; by default those of 1 % and 0.1 % that the sample can resolve, which is one
            allowed false positive or more. A given rate that it cannot resolve is refused.
        confidence: of every interval.
        draw: how members were drawn, if not record by record: where whole clusters were, intervals are those of so many
            clusters, since records of one cluster tell less than as many of different ones.
        units: whether the scores are those of units with several records each.

    Example:
        >>> metrics = evaluate([4.0, 3.0, 2.5, 2.0, 1.0, 0.5], [1, 1, 0, 1, 0, 0], fprs=[0.34])
        >>> round(metrics.auc, 3), metrics.rates[0].tpr
        (0.889, 1.0)
    """
    values, mask = checked(scores, members)
    curve = roc(values, mask)
    wanted = resolvable(fprs, curve.non_members)
    best = int(np.argmax(curve.tpr - curve.fpr))
    metrics = Metrics(
        auc=auc(values, mask),
        auc_interval=delong(values, mask, confidence=confidence),
        balanced_accuracy=float(1 + curve.tpr[best] - curve.fpr[best]) / 2,
        balanced_accuracy_interval=balanced_accuracy_interval(curve, confidence=confidence),
        rates=tuple(_rate(curve, fpr, confidence) for fpr in wanted),
        confidence=confidence,
        scores=values,
        members=mask,
    )
    return metrics if draw is None and not units else _drawn_together(metrics, curve, draw)


def resolvable(fprs: Sequence[float] | None, non_members: int) -> tuple[float, ...]:
    """The false-positive rates to evaluate at; if None, the default ones that the sample can resolve."""
    if fprs is None:
        return tuple(fpr for fpr in DEFAULT_FPRS if allowed_wrong(fpr, non_members) >= 1)
    for fpr in fprs:
        if not 0 < fpr < 1:
            raise InputError(f"fprs: {fpr} is not a rate between 0 and 1.")
        if allowed_wrong(fpr, non_members) < 1:
            more = f"Audit {int(np.ceil(1 / fpr))} non-members, or use" if fpr > 1e-10 else "Use"
            raise InputError(
                f"fprs: with {non_members} non-members a false-positive rate of {fpr:.4g} is not measurable; the "
                f"smallest is {1 / non_members:.2g}. {more} a larger rate."
            )
    return tuple(fprs)


def verdict_rate(fprs: Sequence[float], non_members: int) -> float | None:
    """The smallest rate at which ten non-members or more may be wrongly flagged; if there is none, the largest."""
    enough = [fpr for fpr in fprs if allowed_wrong(fpr, non_members) >= ENOUGH_WRONG]
    return min(enough) if enough else max(fprs, default=None)


class AcrossTargets(NamedTuple):
    """A figure over several target models.

    Its interval covers what another target would change, members and training, which that of one target does not.
    """

    mean: float  # over the targets
    std: float  # sample standard deviation; NaN for one target
    targets: int  # how many
    interval: Interval  # Student's t-interval of the mean, within 0 and 1; NaN for one target


def across_targets(several: Sequence[Metrics], *, confidence: float = 0.95) -> Mapping[str, AcrossTargets]:
    """AUC, balanced accuracy and each TPR over several targets, keyed by ``auc``, ``tpr@0.01``, ….

    Args:
        several: the figures of one attack, one for each target.
        confidence: of the intervals.

    Example:
        >>> one = evaluate([2.0, 1.0, 1.5, 0.0], [1, 1, 0, 0], fprs=[0.5])
        >>> across_targets([one, one])["auc"]
        AcrossTargets(mean=0.75, std=0.0, targets=2, interval=Interval(low=0.75, high=0.75))
    """
    if not several:
        raise InputError("targets: none were evaluated; there is nothing to average.")
    if len({tuple(rate.wanted for rate in metrics.rates) for metrics in several}) != 1:
        raise InputError("targets: they were evaluated at different false-positive rates; use the same for all.")
    figures = [
        {"auc": one.auc, "balanced_accuracy": one.balanced_accuracy}
        | {f"tpr@{rate.wanted:g}": rate.estimate for rate in one.rates}
        for one in several
    ]
    return {name: mean_over([one[name] for one in figures], confidence) for name in figures[0]}


def mean_over(values: Sequence[float], confidence: float) -> AcrossTargets:
    """The mean of one figure over targets with Student's t interval for shares; of one target without an interval."""
    count, mean = len(values), float(np.mean(values))
    if count == 1:
        return AcrossTargets(mean, float("nan"), 1, Interval(float("nan"), float("nan")))
    std = float(np.std(values, ddof=1))
    reach = float(stdtrit(count - 1, (1 + confidence) / 2)) * std / count**0.5
    return AcrossTargets(mean, std, count, Interval(max(0.0, mean - reach), min(1.0, mean + reach)))


def _rate(curve: ROC, fpr: float, confidence: float) -> Rate:
    point = curve.point_at(fpr)
    first = None
    if point == 0:  # it flags no record
        tpr = float(curve.tpr[1])
        # the highest score that occurs is one threshold for all samples, so its rates are plain ones
        interval = clopper_pearson(round(tpr * curve.members), curve.members, confidence=confidence)
        first = FirstRate(float(curve.fpr[1]), tpr, interval)
    return Rate(
        wanted=fpr,
        fpr=float(curve.fpr[point]),
        tpr=float(curve.tpr[point]),
        interval=tpr_intervals(curve, [fpr], confidence=confidence)[0],
        threshold=float(curve.thresholds[point]),
        allowed=allowed_wrong(fpr, curve.non_members),
        estimate=0.0 if first is not None else tpr_estimates(curve, [fpr])[0],
        first=first,
    )


def _drawn_together(metrics: Metrics, curve: ROC, draw: Draw | None) -> Metrics:
    """The same figures [U] of units, or under a declared draw, with intervals by what was drawn together.

    Units of one cluster are alike, so they tell less than as many units of different ones. The variance of the AUC is
    that of the clusters' sums of placements, and a single unit is a cluster of its own. Near an AUC of 1 a few units
    carry that variance, or a few large clusters do: Student's quantile has the degrees of freedom that their kurtosis
    leaves. A rate has the interval of as many independent units as would vary as much.
    """
    scores, members, confidence = metrics.scores, metrics.members, metrics.confidence
    whole = draw is not None and bool(draw.cluster)
    clusters = draw.clusters if draw is not None and whole else np.arange(len(members))
    sides = [clusters[members], clusters[~members]]
    fewest, tail = min(len(np.unique(side)) for side in sides), (1 + confidence) / 2
    parts = [_variance_of_mean(*one) for one in zip(placements(scores, members), sides, strict=True)]
    spread, uncertainty = (sum(part) for part in zip(*parts, strict=True))
    interval = Interval(0.0, 1.0) if whole else metrics.auc_interval
    if 0 < metrics.auc < 1 and spread > 0 and fewest > 1:
        freedom = max(1.0, 2 * spread**2 / max(uncertainty, 1e-300))
        interval = logit_interval(metrics.auc, spread, float(student.ppf(tail, freedom)))
    if not whole:
        return dataclasses.replace(metrics, auc_interval=interval)
    slower = float(norm.ppf(tail) / student.ppf(tail, max(1, fewest - 1))) ** 2

    def fewer(threshold: float) -> ROC:
        """The curve as if of so many independent units."""
        flagged = (scores >= threshold).astype(np.float64)
        halves = zip((flagged[members], flagged[~members]), sides, strict=True)
        sizes = [_effective(half, own, slower) for half, own in halves]
        return dataclasses.replace(curve, members=sizes[0], non_members=sizes[1])

    def widened(rate: Rate) -> Rate:
        if rate.first is not None:
            return rate
        found = tpr_intervals(fewer(rate.threshold), [rate.wanted], confidence=confidence)[0]
        low, high = min(found.low, rate.interval.low), max(found.high, rate.interval.high)
        return rate._replace(interval=Interval(low, high))

    best = curve.thresholds[int(np.argmax(curve.tpr - curve.fpr))]
    return dataclasses.replace(
        metrics,
        auc_interval=interval,
        balanced_accuracy_interval=balanced_accuracy_interval(fewer(float(best)), confidence=confidence),
        rates=tuple(widened(rate) for rate in metrics.rates),
    )


def _variance_of_mean(values: FloatArray, clusters: IntArray) -> tuple[float, float]:
    """Variance of the mean of values [n] that come in clusters, and the variance of this estimate, by its kurtosis.

    A large cluster draws the mean towards itself, so its sum counts for more (Bell and McCaffrey 2002).
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    sizes, count = np.bincount(codes), int(codes.max(initial=0)) + 1
    if count < 2:
        return 0.0, 0.0
    sums = np.bincount(codes, values - values.mean()) / (1 - sizes / len(values))
    scale = (count - 1) / len(values) ** 2
    second, fourth = float((sums**2).mean()), float((sums**4).mean())
    return scale * second, scale**2 * (fourth - second**2 * (count - 3) / (count - 1)) / count


def _effective(flagged: FloatArray, clusters: IntArray, slower: float) -> int:
    """How many independent units vary as much as these; at most as many as there are."""
    share = float(flagged.mean())
    usual = share * (1 - share) / len(flagged)
    actual, _ = _variance_of_mean(flagged, clusters)
    ratio = 1.0 if usual <= 0 else max(1.0, actual / usual)
    return max(1, int(len(flagged) / ratio * slower))
