"""The figures of one attack against one target, each with its interval, and their mean over several targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from glasshouse.errors import InputError
from glasshouse.evaluation.intervals import Interval, clopper_pearson, delong
from glasshouse.evaluation.roc import ROC, auc, checked, roc

__all__ = ["DEFAULT_FPRS", "AcrossTargets", "FirstRate", "Metrics", "Rate", "across_targets", "evaluate", "resolvable"]

DEFAULT_FPRS = (0.01, 0.001)


class FirstRate(NamedTuple):
    """The smallest false-positive rate that any threshold reaches, and the true-positive rate there."""

    fpr: float
    tpr: float
    interval: Interval


class Rate(NamedTuple):
    """A true-positive rate at a wanted false-positive rate.

    ``fpr`` is the largest achievable rate not above ``wanted``; ``threshold`` is where it is reached on the target
    itself (only an evaluator knows it: an attacker has to estimate it). If more than a share ``wanted`` of the
    non-members have the highest score, no threshold reaches it: both rates are then 0 because no record is called a
    member, which is not a measurement, and ``first`` has the first rate that can be reached.
    """

    wanted: float
    fpr: float
    tpr: float
    interval: Interval
    threshold: float
    first: FirstRate | None = None


@dataclass(frozen=True, eq=False)
class Metrics:
    """How well an attack tells members from others.

    Args:
        auc: area under the ROC.
        auc_interval: DeLong interval of the AUC.
        balanced_accuracy: the best mean of true-positive and true-negative rate over all thresholds.
        balanced_accuracy_interval: its exact interval, both rates at once.
        rates: a `Rate` for each wanted FPR.
        curve: the whole ROC.
        confidence: of the intervals.
    """

    auc: float
    auc_interval: Interval
    balanced_accuracy: float
    balanced_accuracy_interval: Interval
    rates: tuple[Rate, ...]
    curve: ROC
    confidence: float


def evaluate(
    scores: ArrayLike, members: ArrayLike, *, fprs: Sequence[float] | None = None, confidence: float = 0.95
) -> Metrics:
    """Evaluate scores [N] against true membership [N].

    Args:
        scores: higher means member.
        members: the true members of the target.
        fprs: wanted false-positive rates; by default those of 1 % and 0.1 % that the sample can resolve. A given rate
            that it cannot resolve is refused.
        confidence: of every interval.

    Example:
        >>> metrics = evaluate([4.0, 3.0, 2.5, 2.0, 1.0, 0.5], [1, 1, 0, 1, 0, 0], fprs=[0.34])
        >>> round(metrics.auc, 3), metrics.rates[0].tpr
        (0.889, 1.0)
    """
    values, mask = checked(scores, members)
    curve = roc(values, mask)
    wanted = resolvable(fprs, curve.non_members)
    best = int(np.argmax(curve.tpr - curve.fpr))
    return Metrics(
        auc=auc(values, mask),
        auc_interval=delong(values, mask, confidence=confidence),
        balanced_accuracy=float(1 + curve.tpr[best] - curve.fpr[best]) / 2,
        balanced_accuracy_interval=_balanced_interval(curve, best, confidence),
        rates=tuple(_rate(curve, fpr, confidence) for fpr in wanted),
        curve=curve,
        confidence=confidence,
    )


def resolvable(fprs: Sequence[float] | None, non_members: int) -> tuple[float, ...]:
    """The false-positive rates to evaluate at; if None, the default ones that the sample can resolve.

    Example:
        >>> resolvable(None, 500)
        (0.01,)
    """
    if fprs is None:
        return tuple(fpr for fpr in DEFAULT_FPRS if fpr * non_members >= 1)
    for fpr in fprs:
        if not 0 < fpr < 1:
            raise InputError(f"fprs: {fpr} is not a rate between 0 and 1.")
        if fpr * non_members * (1 + 1e-12) < 1:
            raise InputError(
                f"fprs: with {non_members} non-members a false-positive rate of {fpr:.4g} is not measurable; the "
                f"smallest is {1 / non_members:.2g}. Audit {int(np.ceil(1 / fpr))} non-members, or use a larger rate."
            )
    return tuple(fprs)


class AcrossTargets(NamedTuple):
    """A figure over several target models.

    Args:
        mean: over the targets.
        std: sample standard deviation; NaN for one target.
        targets: how many.
        interval: Student's t-interval of the mean, within 0 and 1; NaN for one target. It covers what another target
            would change, members and training, which an interval of one target does not.
    """

    mean: float
    std: float
    targets: int
    interval: Interval


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
    figures: dict[str, list[float]] = {
        "auc": [metrics.auc for metrics in several],
        "balanced_accuracy": [metrics.balanced_accuracy for metrics in several],
    }
    for index, rate in enumerate(several[0].rates):
        figures[f"tpr@{rate.wanted:g}"] = [metrics.rates[index].tpr for metrics in several]
    return {name: _mean_of(values, confidence) for name, values in figures.items()}


def _mean_of(values: Sequence[float], confidence: float) -> AcrossTargets:
    count, mean = len(values), float(np.mean(values))
    if count == 1:
        return AcrossTargets(mean, float("nan"), 1, Interval(float("nan"), float("nan")))
    std = float(np.std(values, ddof=1))
    reach = float(stdtrit(count - 1, (1 + confidence) / 2)) * std / count**0.5
    return AcrossTargets(mean, std, count, Interval(max(0.0, mean - reach), min(1.0, mean + reach)))


def _rate(curve: ROC, fpr: float, confidence: float) -> Rate:
    point = curve.point_at(fpr)

    def at(place: int) -> tuple[float, float, Interval]:
        tpr = float(curve.tpr[place])
        interval = clopper_pearson(round(tpr * curve.members), curve.members, confidence=confidence)
        return float(curve.fpr[place]), tpr, interval

    first = FirstRate(*at(1)) if point == 0 else None  # point 0 calls no record a member
    return Rate(fpr, *at(point), float(curve.thresholds[point]), first)


def _balanced_interval(curve: ROC, point: int, confidence: float) -> Interval:
    """Both rates are inside their exact intervals at once: each gets half of the allowed error."""
    each = (1 + confidence) / 2
    inside, outside = curve.members, curve.non_members
    tpr = clopper_pearson(round(float(curve.tpr[point]) * inside), inside, confidence=each)
    tnr = clopper_pearson(round((1 - float(curve.fpr[point])) * outside), outside, confidence=each)
    return Interval((tpr.low + tnr.low) / 2, (tpr.high + tnr.high) / 2)
