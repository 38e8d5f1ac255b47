"""Confidence intervals of rates, of a TPR whose threshold is read from the same sample, and of the AUC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, expit, logit
from scipy.stats import beta, binom, norm, rankdata

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.errors import InputError
from glasshouse.evaluation.roc import ROC, checked

__all__ = [
    "Interval",
    "balanced_accuracy_interval",
    "clopper_pearson",
    "delong",
    "placements",
    "tpr_estimates",
    "tpr_intervals",
]

_NODES = 129  # values of the number of non-members above the threshold; more change no printed digit
_HALVINGS = 24  # of the log-odds: a share of 2e-6 of the rate
_FURTHEST = 18.0  # log-odds; rates beyond 1.5e-8 are printed as 0 and 1


class Interval(NamedTuple):
    """Lower and upper end."""

    low: float
    high: float


def clopper_pearson(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """The exact interval of a rate: it covers the truth at least as often as its confidence.

    Example:
        >>> low, high = clopper_pearson(5, 100)
        >>> round(low, 4), round(high, 4)
        (0.0164, 0.1128)
    """
    if not 0 <= successes <= trials or trials < 1:
        raise InputError(f"{successes} of {trials} is not a rate.")
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return Interval(low, high)


def tpr_intervals(
    curve: ROC,
    fprs: Sequence[float] | FloatArray,
    *,
    confidence: float = 0.95,
    nodes: int = _NODES,
    halvings: int = _HALVINGS,
) -> list[Interval]:
    """Intervals of the true-positive rate at each false-positive rate, where the threshold comes from the same sample.

    The true threshold at rate α has J of the n₀ non-members above it, and J is binomial (n₀, α) whatever the scores
    are. Given J, the number M of the members above it is known up to those between two neighbouring non-members, and
    the true-positive rate is between Beta(M, n₁ − M + 1) and Beta(M + 1, n₁ − M), as in a Clopper-Pearson interval.
    The ends are quantiles of the mixture of these distributions over J, half of each. So an interval is wide where few
    false positives are allowed; its lower end is 0 if there may be no non-member above the threshold. Coverage is
    measured in ``benchmarks/intervals.md``.

    Args:
        curve: the ROC of a sample.
        fprs: [P] false-positive rates above 0.
        confidence: of each interval by itself.
        nodes: how many values of J to use where there are more.
        halvings: of the range in which an end is looked for; fewer are quicker, and enough for a picture.

    Example:
        >>> from glasshouse.evaluation.roc import roc
        >>> rng = np.random.default_rng(0)
        >>> members = np.arange(2000) < 1000
        >>> low, high = tpr_intervals(roc(rng.normal(members, 1.0), members), [0.01])[0]
        >>> low < 0.0924 < high  # the truth: Φ(1 + Φ⁻¹(0.01))
        True
    """
    tail = (1 - confidence) / 2
    ends = _tpr_quantiles(curve, fprs, [tail, 1 - tail], nodes, halvings)
    return [Interval(float(low), float(high)) for low, high in zip(*ends, strict=True)]


def tpr_estimates(curve: ROC, fprs: Sequence[float] | FloatArray) -> list[float]:
    """Median-unbiased estimates of the true-positive rate at each false-positive rate: as often too high as too low.

    The rate of a sample at the lowest threshold that flags at most k of n non-members is too high: all members above
    non-member k + 1 count, and a share of (k + 1) / (n + 1) of all non-members is above that on average, not k / n.
    With one allowed false positive and a weak leak it is too high by half. The estimate is the median of the
    distribution whose other quantiles are the ends of `tpr_intervals`; ``benchmarks/intervals_bias.md`` has its bias.

    Args:
        curve: the ROC of a sample.
        fprs: [P] false-positive rates above 0.

    Example:
        >>> from glasshouse.evaluation.roc import roc
        >>> scores = np.random.default_rng(0).normal(size=(400, 200))  # 400 samples of scores that say nothing
        >>> curves = [roc(one, np.arange(200) < 100) for one in scores]
        >>> round(float(np.median([curve.tpr[curve.point_at(0.01)] for curve in curves])), 2)
        0.02
        >>> round(float(np.median([tpr_estimates(curve, [0.01]) for curve in curves])), 2)
        0.01
    """
    (found,) = _tpr_quantiles(curve, fprs, [0.5], _NODES, _HALVINGS)
    return [float(rate) for rate in found]


def _tpr_quantiles(
    curve: ROC, fprs: Sequence[float] | FloatArray, levels: Sequence[float], nodes: int, halvings: int
) -> list[FloatArray]:
    """Quantiles of the distribution of each true-positive rate, [P] for each level."""
    above, weights = _above_threshold(curve.non_members, np.asarray(fprs, dtype=np.float64), nodes)
    wrong = np.rint(curve.fpr * curve.non_members)
    last = np.searchsorted(wrong, above, side="right") - 1  # [P, J] the point with so many wrong, or the next fewer
    first = np.searchsorted(wrong, wrong[last], side="left")  # with the fewest members among those with as many wrong
    right = np.rint(curve.tpr * curve.members)
    return [_quantile(right[first], right[last], curve.members, weights, level, halvings) for level in levels]


def balanced_accuracy_interval(curve: ROC, *, confidence: float = 0.95) -> Interval:
    """Interval of the best balanced accuracy over all thresholds, which the sample overstates.

    The lower end subtracts how far two samples of this size from one distribution are apart at their worst threshold
    (the one-sided bound of Kolmogorov and Smirnov). The upper end is the largest over thresholds of each threshold's
    own upper end: the best threshold is one of them.

    Example:
        >>> from glasshouse.evaluation.roc import roc
        >>> scores = np.random.default_rng(0).normal(size=400)
        >>> balanced_accuracy_interval(roc(scores, np.arange(400) < 200)).low
        0.5
    """
    tail = (1 - confidence) / 2
    sizes = (curve.members, curve.non_members)
    reach = np.sqrt(-np.log(tail) / 2 * sum(1 / size for size in sizes))
    best = float(np.max(curve.tpr - curve.fpr))
    z = float(norm.isf(tail))
    spread = np.zeros(len(curve.tpr))
    for rate, size in zip((curve.tpr, 1 - curve.fpr), sizes, strict=True):
        # two more of each kind (Agresti and Coull): a rate of 0 or 1 in a sample has an error too
        moved = (rate * size + z**2 / 2) / (size + z**2)
        spread += moved * (1 - moved) / (size + z**2)
    high = float(np.max(curve.tpr - curve.fpr + z * np.sqrt(spread)))
    return Interval((1 + max(0.0, best - reach)) / 2, min(1.0, (1 + high) / 2))


def delong(scores: ArrayLike, members: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Interval of the AUC from its placements (DeLong et al., 1988), on the logit scale so that it stays in (0, 1).

    Example:
        >>> low, high = delong([4.0, 3.0, 2.5, 2.0, 1.0, 0.5], [1, 1, 0, 1, 0, 0])
        >>> 0 < low < 0.8889 < high < 1
        True
    """
    values, mask = checked(scores, members)
    above, below = placements(values, mask)
    area = float(above.mean())
    spread = sum(float(np.var(part, ddof=1)) / len(part) for part in (above, below) if len(part) > 1)
    if area in (0.0, 1.0) or spread == 0.0:
        # separation is perfect in the sample: all that is known is that none of min(n, m) independent pairs failed
        pairs = min(len(above), len(below))
        return clopper_pearson(round(area * pairs), pairs, confidence=confidence)
    reach = float(norm.ppf((1 + confidence) / 2)) * np.sqrt(spread) / (area * (1 - area))
    return Interval(float(expit(logit(area) - reach)), float(expit(logit(area) + reach)))


def placements(scores: FloatArray, members: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The share of non-members below each member [n₁], and of members above each non-member [n₀]; ties count half.

    The mean of either is the AUC, and their variances give its error (DeLong et al., 1988).

    Example:
        >>> placements(np.array([3.0, 1.0, 2.0, 1.0]), np.array([True, True, False, False]))
        (array([1.  , 0.25]), array([0.5 , 0.75]))
    """
    inside, outside = scores[members], scores[~members]
    ranks = rankdata(scores)  # rank among all minus rank among its own side: how many of the other side are below
    return (
        (ranks[members] - rankdata(inside)) / len(outside),
        1 - (ranks[~members] - rankdata(outside)) / len(inside),
    )


def _above_threshold(non_members: int, alphas: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Numbers J of non-members above the true threshold, [P, J], and their probabilities, [P, J]."""
    low, high = (binom.ppf(level, non_members, alphas) for level in (1e-7, 1 - 1e-7))
    most = int(np.max(high - low)) + 1
    if most <= nodes:
        above = np.minimum(low[:, None] + np.arange(most), non_members)
        weights = binom.pmf(low[:, None] + np.arange(most), non_members, alphas[:, None])
        return above, weights / weights.sum(axis=1, keepdims=True)
    levels = (np.arange(nodes) + 0.5) / nodes
    return binom.ppf(levels, non_members, alphas[:, None]), np.full((len(alphas), nodes), 1 / nodes)


def _quantile(
    fewest: FloatArray, most: FloatArray, members: int, weights: FloatArray, level: float, halvings: int
) -> FloatArray:
    """The quantile of each row's mixture of Beta distributions, [P], by halving the log-odds."""
    low, high = np.full(len(weights), -_FURTHEST), np.full(len(weights), _FURTHEST)
    for _ in range(halvings):
        middle = (low + high) / 2
        at = expit(middle)[:, None]
        # Beta(0, ·) is the point 0, and Beta(·, 0) the point 1
        from_fewest = np.where(fewest > 0, betainc(np.maximum(fewest, 1), members - fewest + 1, at), 1.0)
        from_most = np.where(most < members, betainc(most + 1, np.maximum(members - most, 1), at), 0.0)
        below = (weights * (from_fewest + from_most) / 2).sum(axis=1) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    # an end at a point mass is exactly 0 or 1, which halving only approaches
    return np.where(low == -_FURTHEST, 0.0, np.where(high == _FURTHEST, 1.0, expit((low + high) / 2)))
