"""Confidence intervals of rates, of a TPR whose threshold is read from the same sample, and of the AUC.

Where audited records are a random sample of a finite population, others say what an audit of all would have found.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, expit, logit
from scipy.stats import beta, binom, hypergeom, norm, rankdata

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.evaluation.roc import ROC, allowed_wrong, checked, roc

_NODES = 129  # values of the number of non-members above the threshold; more change no printed digit
_HALVINGS = 24  # of the log-odds: a share of 2e-6 of the rate
_EDGE = 0.005  # the share of one side beyond which the other is counted for a bound on the ratio of rates
_TAILS = np.geomspace(1e-7, 1.0, 1000)
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
    low = float(lowest_rate(successes, trials, tail)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return Interval(low, high)


def lowest_rate(successes: ArrayLike, trials: ArrayLike, tail: float) -> FloatArray:
    """The lower end of that interval for one or more successes, of any shape, with an error of ``tail`` below it."""
    return np.asarray(beta.ppf(tail, successes, np.subtract(trials, successes) + 1))


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
    The ends are quantiles of the mixture of these over J, half of each (``benchmarks/statistics/intervals.md``).

    Args:
        curve: the ROC of a sample.
        fprs: [P] false-positive rates above 0.
        confidence: of each interval by itself.
        nodes: how many values of J to use where there are more.
        halvings: of the range in which an end is looked for; fewer are quicker, and enough for a picture.
    """
    tail = (1 - confidence) / 2
    ends = _tpr_quantiles(curve, fprs, [tail, 1 - tail], nodes, halvings)
    return [Interval(float(low), float(high)) for low, high in zip(*ends, strict=True)]


def tpr_estimates(curve: ROC, fprs: Sequence[float] | FloatArray) -> list[float]:
    """Median-unbiased estimates of the true-positive rate at each false-positive rate: as often too high as too low.

    The rate of a sample is too high: all members above non-member k + 1 count, and a share of (k + 1) / (n + 1) of all
    non-members is above that on average, not k / n. The estimate is the median of the distribution whose other
    quantiles are the ends of `tpr_intervals`; ``benchmarks/statistics/intervals_bias.md`` has its bias.
    """
    (found,) = _tpr_quantiles(curve, fprs, [0.5], _NODES, _HALVINGS)
    return [float(rate) for rate in found]


def _tpr_quantiles(
    curve: ROC, fprs: Sequence[float] | FloatArray, levels: Sequence[float], nodes: int, halvings: int
) -> list[FloatArray]:
    """Quantiles of the distribution of each true-positive rate, [P] for each level."""
    above, weights = _above_threshold(curve.non_members, np.asarray(fprs, dtype=np.float64), nodes)
    fewest, most = _members_above(curve, above)
    return [_quantile(fewest, most, curve.members, weights, level, halvings) for level in levels]


def _members_above(curve: ROC, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The fewest and the most members above a threshold with so many non-members above it, or the next fewer."""
    wrong, right = np.rint(curve.fpr * curve.non_members), np.rint(curve.tpr * curve.members)
    last = np.searchsorted(wrong, above, side="right") - 1
    return right[np.searchsorted(wrong, wrong[last], side="left")], right[last]


def ratio_bound(curve: ROC, *, error: float) -> float:
    """A lower bound on the largest ratio of TPR to FPR, or of the rates of the cleared, over all thresholds.

    Let M members score above the (k + 1)-th highest of n₀ non-members. The true FPR there is Beta(k + 1, n₀ − k), or
    smaller with ties, whatever the scores are. So if no TPR exceeds f times its FPR, at least M members are above with
    a chance of at most E[P(Bin(n₁, min(1, f·FPR)) ≥ M)]. The bound is the largest f for which this is at most the
    error, of k non-members at the top and, with sides exchanged, of k members at the bottom; half of the error each.
    As k is a fixed share, the same proportions in more records never lower it.

    Args:
        curve: the ROC of a sample.
        error: how often the bound may be above the truth.

    Example:
        >>> ratio_bound(roc([3.0, 2.0, 1.0, 0.0] * 50, [1, 1, 0, 0] * 50), error=0.01) > 5
        True
    """
    members, others = curve.members, curve.non_members
    missed = np.rint((1 - curve.tpr) * members) <= allowed_wrong(_EDGE, members)
    identified = round(float(curve.tpr[curve.point_at(_EDGE)]) * members)
    cleared = others - round(float(curve.fpr[int(np.argmax(missed))]) * others)
    return max(
        _largest_factor(identified, members, others, error=error / 2),
        _largest_factor(cleared, others, members, error=error / 2),
    )


def _largest_factor(found: int, size: int, others: int, *, error: float) -> float:
    """The largest f of `ratio_bound`, where ``found`` of one side are beyond all but a share of the others."""
    if not found:
        return 0.0
    wrong = allowed_wrong(_EDGE, others)
    rates = beta.isf(_TAILS[:-1], wrong + 1, others - wrong)  # upper sums: the chance is never too small

    def chance(factor: float) -> float:
        return float(_TAILS[0] + np.diff(_TAILS) @ betainc(found, size - found + 1, np.minimum(1.0, factor * rates)))

    return float(brentq(lambda factor: chance(factor) - error, 0.0, 1 / float(rates.min())))


def balanced_accuracy_interval(curve: ROC, *, confidence: float = 0.95) -> Interval:
    """Interval of the best balanced accuracy over all thresholds, which the sample overstates.

    The lower end subtracts the one-sided bound of Kolmogorov and Smirnov for two samples. The upper end is the largest
    over thresholds of each threshold's own upper end.
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
    above, below = placements(*checked(scores, members))
    area = float(above.mean())
    spread = variance_of_means(above, below)
    if area in (0.0, 1.0) or spread == 0.0:
        return separated(area, len(above), len(below), confidence=confidence)
    return logit_interval(area, spread, float(norm.ppf((1 + confidence) / 2)))


def variance_of_means(*parts: FloatArray) -> float:
    """Variance of a sum of independent means; a mean of one value has none."""
    return sum(float(np.var(part, ddof=1)) / len(part) for part in parts if len(part) > 1)


def separated(area: float, members: int, non_members: int, *, confidence: float) -> Interval:
    """Of an AUC of 0 or 1: all that is known is that none of min(n, m) independent pairs was the other way round."""
    pairs = min(members, non_members)
    return clopper_pearson(round(area * pairs), pairs, confidence=confidence)


def logit_interval(area: float, variance: float, quantile: float) -> Interval:
    """An interval of an area that is symmetric on the logit scale."""
    reach = quantile * np.sqrt(variance) / (area * (1 - area))
    return Interval(float(expit(logit(area) - reach)), float(expit(logit(area) + reach)))


def placements(scores: FloatArray, members: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The share of non-members below each member [n₁], and of members above each non-member [n₀]; ties count half."""
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


_LEVELS = 65  # numbers of non-members above the threshold that are tried; more change no printed digit
_FAR = 8.0  # standard deviations beyond which nothing is left


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """How audited records were drawn from all records: within strata, each record with the same chance."""

    strata: IntArray  # [n] the stratum of each audited record
    sizes: IntArray  # [H] how many of all records each stratum has
    members: int  # how many of all records are members of the target

    @property
    def records(self) -> int:
        """N, how many records there are."""
        return int(self.sizes.sum())

    def sentence(self, unit: str) -> str:
        """For readers of the figures."""
        return (
            f"All figures are estimated from a sample of {len(self.strata)} of {self.records} {unit}, drawn at random "
            f"within strata of degree and class."
        )


class SamplingRate(NamedTuple):
    """The true-positive rate of all members, at a threshold that flags a wanted share of all non-members."""

    wanted: float
    tpr: float
    interval: Interval


@dataclass(frozen=True)
class SamplingIntervals:
    """What an audit of all records would find, as a sample tells it."""

    audited: int  # n, how many records were audited
    records: int  # N, how many there are
    auc: float  # the estimate of the AUC
    auc_interval: Interval  # of the AUC over all records
    rates: tuple[SamplingRate, ...]  # for each wanted false-positive rate
    confidence: float  # of each interval


def sampling_intervals(
    scores: ArrayLike, members: ArrayLike, sampled: Sampled, *, fprs: Sequence[float], confidence: float = 0.95
) -> SamplingIntervals:
    """Estimate the AUC and true-positive rates of all records from scores and members [n] of a sample.

    Scores, members and the graph are fixed; what is random is the draw alone. Each interval holds by itself.
    """
    values, mask = checked(scores, members)
    if len(sampled.strata) != len(values) or not int(mask.sum()) <= sampled.members <= sampled.records:
        raise InputError("sampled: it does not describe how these records were drawn.")
    curve = roc(values, mask)
    rates = [
        SamplingRate(fpr, _tpr_estimate(curve, fpr, sampled), _tpr_interval(curve, fpr, sampled, confidence))
        for fpr in fprs
    ]
    interval = _auc_interval(values, mask, sampled, confidence=confidence)
    return SamplingIntervals(len(values), sampled.records, curve.area, interval, tuple(rates), confidence)


def _auc_interval(scores: FloatArray, members: BoolArray, sampled: Sampled, *, confidence: float) -> Interval:
    """The AUC as a mean of one number per record, (placement - AUC) / (share of its side), by strata."""
    above, below = placements(scores, members)
    area = float(above.mean())
    share = sampled.members / sampled.records
    parts = np.empty(len(scores))
    parts[members], parts[~members] = (above - area) / share, (below - area) / (1 - share)
    spread = _stratified_variance(parts, sampled)
    if area in (0.0, 1.0) or spread == 0.0:
        everyone = len(scores) == sampled.records
        return Interval(area, area) if everyone else delong(scores, members, confidence=confidence)
    return logit_interval(area, spread, float(norm.ppf((1 + confidence) / 2)))


def _stratified_variance(parts: FloatArray, sampled: Sampled) -> float:
    """Variance of the mean of a stratified sample drawn without replacement; strata of one record have the mean's."""
    strata, total = sampled.strata, sampled.records
    counts = np.bincount(strata, minlength=len(sampled.sizes))
    means = np.bincount(strata, parts, len(counts)) / np.maximum(counts, 1)
    squares = np.bincount(strata, (parts - means[strata]) ** 2, len(counts))
    within = np.where(counts > 1, squares / np.maximum(counts - 1, 1), parts.var())
    left_out = 1 - counts / np.maximum(sampled.sizes, 1)
    return float((np.square(sampled.sizes / total) * left_out * within / np.maximum(counts, 1)).sum())


def _tpr_interval(curve: ROC, fpr: float, sampled: Sampled, confidence: float) -> Interval:
    """As `tpr_intervals`, but drawn without replacement: hypergeometric in place of binomial.

    Of N₀ non-members, K are above the threshold that an audit of all would find; J of them are among the n₀ audited.
    The ends are the fewest and the most members above it, of all N₁, that the audited ones do not contradict, over all
    J. Strata are not used: they only make a sample better.
    """
    non_members, insiders = sampled.records - sampled.members, sampled.members
    above, weights = _above_threshold_of_sample(allowed_wrong(fpr, non_members), non_members, curve.non_members)
    fewest, most = _members_above(curve, above)
    tail = (1 - confidence) / 2

    def chance(total: int) -> float:
        """That a sample shows at least as many members above the threshold, if all records have ``total`` of them."""
        each = [hypergeom.sf(count, insiders, total, curve.members) for count in (fewest - 1, most)]
        return float((weights * (each[0] + each[1])).sum() / 2)

    low = bisect_left(range(insiders), True, key=lambda total: chance(total) >= tail)
    high = bisect_left(range(insiders + 1), True, key=lambda total: chance(total) > 1 - tail) - 1
    return Interval(low / insiders, max(low, high) / insiders)


def _tpr_estimate(curve: ROC, fpr: float, sampled: Sampled) -> float:
    """The median of the same distribution; where all records were audited, what they show."""
    low, high = _tpr_interval(curve, fpr, sampled, 0.0)
    # the threshold of all records lies between two audited non-members: halfway where few were audited, and just above
    # the lower one where all were
    return low + (1 + curve.non_members / (sampled.records - sampled.members)) / 2 * (high - low)


def _above_threshold_of_sample(allowed: int, non_members: int, audited: int) -> tuple[FloatArray, FloatArray]:
    """How many audited non-members are above the threshold of all, [J], and the probability of each, [J]."""
    middle, spread = audited * allowed / non_members, np.sqrt(audited * allowed / non_members) + 1
    low, high = max(0, allowed + audited - non_members), min(allowed, audited)
    every = np.arange(max(low, int(middle - _FAR * spread)), min(high, int(middle + _FAR * spread)) + 1)
    weights = hypergeom.pmf(every, non_members, allowed, audited)
    if len(every) <= _LEVELS:
        return every.astype(np.float64), weights / weights.sum()
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    at = np.searchsorted(np.cumsum(weights) / weights.sum(), levels)
    return every[at].astype(np.float64), np.full(_LEVELS, 1 / _LEVELS)
