"""Of those accused, how many wrongly: precision and advantage of a decision, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from glasshouse.arrays import BoolArray
from glasshouse.evaluation.intervals import Interval, clopper_pearson
from glasshouse.evaluation.thresholds import Threshold

__all__ = ["PRIORS", "Accusations", "Precision", "accusations_of", "precision_at"]

PRIORS = (0.01, 0.1, 0.5)  # shares of members among the people that one asks about


@dataclass(frozen=True)
class Precision:
    """The share of members among the accused, if a share ``prior`` of those one asks about are members.

    Args:
        prior: the share of members.
        value: π·TPR / (π·TPR + (1-π)·FPR); None if no record is accused.
        interval: of the value.
    """

    prior: float
    value: float | None
    interval: Interval


@dataclass(frozen=True)
class Accusations:
    """What happens if every record above a threshold is called a member.

    The threshold comes from simulated targets, so both rates are plain shares of the target's records.

    Args:
        wanted: the false-positive rate that the threshold aims at.
        tpr: share of the members that are called members.
        tpr_interval: Clopper-Pearson.
        fpr: share of the others that are called members.
        fpr_interval: Clopper-Pearson.
        advantage: TPR - FPR.
        advantage_interval: of it.
        precisions: the share of members among the accused, one for each of `PRIORS`.
    """

    wanted: float
    tpr: float
    tpr_interval: Interval
    fpr: float
    fpr_interval: Interval
    advantage: float
    advantage_interval: Interval
    precisions: tuple[Precision, ...]


def accusations_of(
    threshold: Threshold, flagged: BoolArray, members: BoolArray, *, confidence: float = 0.95
) -> Accusations:
    """Rates, advantage and precision of a threshold that was chosen without the target's members.

    Args:
        threshold: from simulated targets.
        flagged: [N] which records it flags.
        members: [N] who trained the target.
        confidence: of every interval.

    Example:
        >>> import numpy as np
        >>> threshold = Threshold(0.01, 0.5, "mean", 0.01, Interval(0.0, 0.02), 8)
        >>> scores = np.repeat([1.0, 0.0, 1.0, 0.0], [30, 70, 1, 99])
        >>> found = accusations_of(threshold, threshold.decide(scores), np.arange(200) < 100)
        >>> round(found.advantage, 2), [round(one.value, 2) for one in found.precisions]
        (0.29, [0.23, 0.77, 0.97])
    """
    hits, wrong = int(flagged[members].sum()), int(flagged[~members].sum())
    inside, outside = int(members.sum()), int((~members).sum())
    tpr, fpr = hits / inside, wrong / outside
    tpr_interval = clopper_pearson(hits, inside, confidence=confidence)
    fpr_interval = clopper_pearson(wrong, outside, confidence=confidence)
    ratio = _ratio_interval(hits, inside, wrong, outside, confidence=confidence)
    return Accusations(
        wanted=threshold.wanted,
        tpr=tpr,
        tpr_interval=tpr_interval,
        fpr=fpr,
        fpr_interval=fpr_interval,
        advantage=tpr - fpr,
        advantage_interval=_difference_interval(tpr, tpr_interval, fpr, fpr_interval),
        precisions=tuple(
            Precision(
                prior,
                precision_at(prior, fpr / tpr) if hits else (0.0 if wrong else None),
                Interval(precision_at(prior, ratio.high), precision_at(prior, ratio.low)),
            )
            for prior in PRIORS
        ),
    )


def precision_at(prior: float, ratio: float) -> float:
    """Share of members among the accused, from a prior and FPR / TPR, in which it falls.

    Example:
        >>> precision_at(0.5, 0.25), precision_at(0.5, float("inf"))
        (0.8, 0.0)
    """
    return prior / (prior + (1 - prior) * ratio)


def _difference_interval(first: float, one: Interval, second: float, other: Interval) -> Interval:
    """The interval of a difference from those of its parts (Newcombe 1998, method 10, here with exact intervals).

    Both parts are seldom at their ends at once, so the distances add as squares: the rectangle of two 97.5 % intervals
    covers 99.9 % and more (benchmarks/next_questions.md).
    """
    difference = first - second
    low = difference - math.hypot(first - one.low, other.high - second)
    high = difference + math.hypot(one.high - first, second - other.low)
    return Interval(max(-1.0, low), min(1.0, high))


def _ratio_interval(hits: int, inside: int, wrong: int, outside: int, *, confidence: float) -> Interval:
    """The interval of FPR / TPR: squares of distances add as for a difference, on the logarithmic scale.

    If nobody, or no member, was accused, a logarithm is infinite, and the rectangle of both intervals is used, each of
    them with half of the allowed error.
    """
    if hits and wrong:
        upper = clopper_pearson(wrong, outside, confidence=confidence)
        lower = clopper_pearson(hits, inside, confidence=confidence)
        fpr, tpr = wrong / outside, hits / inside
        down = math.hypot(math.log(fpr / upper.low), math.log(lower.high / tpr))
        up = math.hypot(math.log(upper.high / fpr), math.log(tpr / lower.low))
        return Interval(fpr / tpr * math.exp(-down), fpr / tpr * math.exp(up))
    each = (1 + confidence) / 2
    upper, lower = (clopper_pearson(*count, confidence=each) for count in ((wrong, outside), (hits, inside)))
    return Interval(upper.low / lower.high, upper.high / lower.low if lower.low else math.inf)
