"""Figures under a declared draw: intervals by what was drawn together."""

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
) -> Metrics:
    """Figures of scores [U]; where whole clusters were drawn, intervals are those of so many clusters.

    Units of one cluster are alike, so they tell less than as many units of different ones. The variance of the AUC is
    that of the clusters' sums of placements, with Student's quantile of the smaller number of clusters; a rate has the
    interval of as many independent units as would vary as much.
    """
    metrics = evaluate(scores, members, fprs=fprs, confidence=confidence)
    if draw is None or not draw.cluster:
        return metrics
    clusters = draw.clusters
    sides = [np.unique(clusters[members == side]) for side in (True, False)]
    freedom = max(1, min(len(side) for side in sides) - 1)
    tail = (1 + confidence) / 2
    reach = float(student.ppf(tail, freedom))
    slower = (float(norm.ppf(tail)) / reach) ** 2
    above, below = placements(scores, members)
    spread = sum(_cluster_variance(part, clusters[members == side]) for part, side in ((above, True), (below, False)))
    area = metrics.auc
    interval = Interval(0.0, 1.0)
    if 0 < area < 1 and spread > 0 and min(len(side) for side in sides) > 1:
        interval = logit_interval(area, spread, reach)

    def fewer(threshold: float) -> ROC:
        """The curve as if of so many independent units."""
        flagged = (scores >= threshold).astype(np.float64)
        sizes = [_effective(flagged[members == side], clusters[members == side], slower) for side in (True, False)]
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


def _cluster_variance(values: FloatArray, clusters: IntArray) -> float:
    """Variance of the mean of values [n] that come in clusters."""
    found, codes = np.unique(clusters, return_inverse=True)
    sums = np.bincount(codes, values - values.mean())
    count = len(found)
    return float((sums**2).sum() * count / max(1, count - 1) / len(values) ** 2)


def _effective(flagged: FloatArray, clusters: IntArray, slower: float) -> int:
    """How many independent units vary as much as these; at most as many as there are."""
    share = float(flagged.mean())
    usual = share * (1 - share) / len(flagged)
    actual = _cluster_variance(flagged, clusters)
    ratio = 1.0 if usual <= 0 else max(1.0, actual / usual)
    return max(1, int(len(flagged) / ratio * slower))
