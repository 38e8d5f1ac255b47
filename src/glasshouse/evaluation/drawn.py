"""Figures of units and under a declared draw: intervals by what was drawn together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.data.design import Draw
from glasshouse.evaluation.intervals import (
    Interval,
    balanced_accuracy_interval,
    logit_interval,
    placements,
    tpr_intervals,
)
from glasshouse.evaluation.metrics import Metrics, Rate, evaluate
from glasshouse.evaluation.roc import ROC


def evaluate_drawn(
    scores: FloatArray,
    members: BoolArray,
    *,
    fprs: Sequence[float],
    confidence: float = 0.95,
    draw: Draw | None = None,
    units: bool = False,
) -> Metrics:
    """Figures of scores [U]; of units, or under a declared draw, with intervals by what was drawn together.

    Units of one cluster are alike, so they tell less than as many units of different ones. The variance of the AUC is
    that of the clusters' sums of placements, and a single unit is a cluster of its own. Near an AUC of 1 a few units
    carry that variance, or a few large clusters do: Student's quantile has the degrees of freedom that their kurtosis
    leaves. A rate has the interval of as many independent units as would vary as much.
    """
    metrics = evaluate(scores, members, fprs=fprs, confidence=confidence)
    if draw is None and not units:
        return metrics
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
        return dataclasses.replace(metrics.curve, members=sizes[0], non_members=sizes[1])

    def widened(rate: Rate) -> Rate:
        if rate.first is not None:
            return rate
        found = tpr_intervals(fewer(rate.threshold), [rate.wanted], confidence=confidence)[0]
        low, high = min(found.low, rate.interval.low), max(found.high, rate.interval.high)
        return rate._replace(interval=Interval(low, high))

    best = metrics.curve.thresholds[int(np.argmax(metrics.curve.tpr - metrics.curve.fpr))]
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
