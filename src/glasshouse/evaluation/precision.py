"""How many flagged records are members; and which can be flagged with a stated share of errors, without members."""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.threads import side_by_side
from glasshouse.evaluation.intervals import Interval, clopper_pearson
from glasshouse.evaluation.thresholds import Scored, Threshold

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
