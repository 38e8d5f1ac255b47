"""How much two runs of one attack differ: TPR by a bootstrap that reads the threshold again, and AUC by DeLong."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import beta, norm

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.evaluation.intervals import Interval, placements, tpr_estimates, variance_of_means
from glasshouse.evaluation.roc import allowed_wrong, checked, roc

ScoredRecords = tuple[FloatArray, BoolArray]  # scores [N] of the records, and which of them are members [N]
Resampling = Literal["paired", "unpaired", "opposed"]

_FEWEST = 10  # members, and non-members: a bootstrap of fewer says nothing about the population
_DRAWS = 4000
_FEWEST_DRAWS = 1000
_WORK = 5 * 10**7  # resampled counts in all, a few seconds
_AT_ONCE = 2 * 10**6  # of them in memory
_BEYOND = 1e-9  # chance that a resampled threshold lies below the records that are resampled


class Difference(NamedTuple):
    """A figure of one run minus that of the run it is compared with."""

    value: float  # the difference
    interval: Interval  # of it, corrected for the number of comparisons
    p_value: float  # two-sided, for no difference at all, corrected in the same way
    resampling: Resampling  # how the runs were resampled together, as in `tpr_difference`
    comparisons: int  # how many are made at once; Bonferroni's correction is for these
    confidence: float  # that all intervals hold at once

    @property
    def shown(self) -> bool:
        """Whether it is more than chance."""
        return self.p_value < 1 - self.confidence


def tpr_difference(
    first: ScoredRecords,
    second: ScoredRecords,
    *,
    fpr: float,
    resampling: Resampling,
    comparisons: int = 1,
    confidence: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> Difference:
    """TPR of the second run at an FPR minus that of the first, with a percentile bootstrap.

    Members and non-members are resampled separately, and the threshold is read again from each sample. Tied scores are
    ordered at random, once. Fewer than ten members or non-members in a run show nothing. ``"paired"`` resampling draws
    the same records in both runs, ``"unpaired"`` each run alone. ``"opposed"`` is for runs where members of one are
    non-members of the other: samples are matched in the worst order, so the interval holds for any dependence. If many
    counts would be needed, there are fewer ``draws``, but at least 1 000.
    """
    one, other = _both(first, second, resampling)
    paired = resampling == "paired"
    source = generator(seed, "difference")
    ties = source.random(len(one[0]))
    placed = [_places(*one, ties), _places(*other, ties if paired else source.random(len(other[0])))]
    allowed = [allowed_wrong(fpr, len(outside)) for _, outside in placed]
    value = _estimate(placed[1], fpr) - _estimate(placed[0], fpr)
    if paired:
        samples = _paired_samples(placed, allowed[0], draws, source)
    else:
        rates = [_resampled(*place, count, draws, source) for place, count in zip(placed, allowed, strict=True)]
        samples = np.sort(rates[1]) - np.sort(rates[0])[::-1] if resampling == "opposed" else rates[1] - rates[0]
    found = value, *_percentiles(samples, (1 - confidence) / comparisons)
    return _judged(found, (one, other), resampling, comparisons, confidence)


def auc_difference(
    first: ScoredRecords,
    second: ScoredRecords,
    *,
    resampling: Resampling,
    comparisons: int = 1,
    confidence: float = 0.95,
) -> Difference:
    """AUC of the second run minus that of the first (DeLong et al., 1988); arguments as for `tpr_difference`."""
    one, other = _both(first, second, resampling)
    before, after = placements(*one), placements(*other)
    value = float(after[0].mean() - before[0].mean())
    if resampling == "paired":
        spread = _error(*(b - a for a, b in zip(before, after, strict=True)))
    elif resampling == "opposed":
        spread = _error(*before) + _error(*after)
    else:
        spread = _error(*before, *after)
    p_value = 2 * float(norm.sf(abs(value) / spread)) if spread else float(value == 0.0)
    reach = float(norm.isf((1 - confidence) / comparisons / 2)) * spread
    found = value, Interval(max(-1.0, value - reach), min(1.0, value + reach)), p_value
    return _judged(found, (one, other), resampling, comparisons, confidence)


def _both(first: ScoredRecords, second: ScoredRecords, resampling: Resampling) -> tuple[ScoredRecords, ScoredRecords]:
    one, other = checked(*first), checked(*second)
    if resampling == "paired" and not np.array_equal(one[1], other[1]):
        raise InputError("paired: the runs do not have the same records and members; compare them without pairing.")
    return one, other


def _judged(
    found: tuple[float, Interval, float],
    runs: tuple[ScoredRecords, ScoredRecords],
    resampling: Resampling,
    comparisons: int,
    confidence: float,
) -> Difference:
    """Corrected for the number of comparisons, and without a judgement where a run has too few records."""
    value, interval, p_value = found
    if min(int((members == kind).sum()) for _, members in runs for kind in (True, False)) < _FEWEST:
        interval, p_value = Interval(-1.0, 1.0), 1.0
    return Difference(value, interval, min(1.0, comparisons * p_value), resampling, comparisons, confidence)


def _error(*parts: FloatArray) -> float:
    return float(np.sqrt(variance_of_means(*parts)))


def _places(scores: FloatArray, members: BoolArray, ties: FloatArray) -> tuple[IntArray, IntArray]:
    """How many non-members are above each member [n₁], and above each non-member [n₀]; ties in the given order."""
    order = np.lexsort((ties, scores))[::-1]
    outside = ~members[order]
    places = np.empty(len(scores), dtype=np.int64)
    places[order] = np.cumsum(outside) - outside
    return places[members], places[~members]


def _estimate(placed: tuple[IntArray, IntArray], fpr: float) -> float:
    """The TPR that reports show, of members and non-members at their places."""
    inside, outside = placed  # a member at the place of a non-member is above it
    values = np.concatenate([0.5 - inside, -outside])
    return tpr_estimates(roc(values, np.arange(len(values)) < len(inside)), [fpr])[0]


def _resampled(
    members: IntArray, outside: IntArray, allowed: int, draws: int, source: np.random.Generator
) -> FloatArray:
    """TPRs of bootstrap samples of one run [draws], without drawing the samples.

    The place of the threshold is that of the (allowed + 1)-th of n₀ uniform numbers, a beta variable.
    """
    n1, n0 = len(members), len(outside)
    found = np.cumsum(np.bincount(members, minlength=n0 + 1))
    threshold = (n0 * source.beta(allowed + 1, n0 - allowed, size=draws)).astype(np.int64)
    return np.asarray(source.binomial(n1, found[np.minimum(threshold, n0 - 1)] / n1) / n1)


def _paired_samples(
    placed: list[tuple[IntArray, IntArray]], allowed: int, draws: int, source: np.random.Generator
) -> FloatArray:
    """Differences of bootstrap samples [draws] that take the same records in both runs."""
    thresholds = _paired_thresholds([outside for _, outside in placed], allowed, draws, source)
    members = [inside for inside, _ in placed]
    n1, draws = len(members[0]), len(thresholds[0])
    only_first, only_second = np.empty((2, draws), dtype=np.int64)
    step = max(1, _AT_ONCE // n1)
    for start in range(0, draws, step):
        some = slice(start, start + step)
        above, beside = (inside <= at[some, None] for inside, at in zip(members, thresholds, strict=True))  # [some, n₁]
        only_first[some], only_second[some] = (above & ~beside).sum(axis=1), (beside & ~above).sum(axis=1)
    lost = source.binomial(n1, only_first / n1)
    rest = np.maximum(n1 - only_first, 1)
    return np.asarray((source.binomial(n1 - lost, only_second / rest) - lost) / n1)


def _paired_thresholds(
    places: list[IntArray], allowed: int, draws: int, source: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Places of the threshold non-member in both runs [draws]; only the tails, where it can be, are resampled."""
    n0 = len(places[0])
    reach = min(n0, int(np.ceil(n0 * beta.isf(_BEYOND, allowed + 1, n0 - allowed))) + 1)
    tail = (places[0] < reach) | (places[1] < reach)
    orders = [np.argsort(place[tail]) for place in places]
    ranked = [place[tail][order] for place, order in zip(places, orders, strict=True)]
    width = int(tail.sum())
    draws = int(np.clip(_WORK // width, min(draws, _FEWEST_DRAWS), draws))
    found = np.empty(draws, dtype=np.int64), np.empty(draws, dtype=np.int64)
    step = max(1, _AT_ONCE // width)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        totals = source.binomial(n0, width / n0, size=rows)  # how many of a sample are in the tail
        cells = source.integers(width, size=int(totals.sum())) + np.repeat(np.arange(rows) * width, totals)
        counts = np.bincount(cells, minlength=rows * width).reshape(rows, width)
        for at, order, rank in zip(found, orders, ranked, strict=True):
            above = np.sum(np.cumsum(counts[:, order], axis=1) <= allowed, axis=1)
            at[start : start + rows] = rank[np.minimum(above, width - 1)]
    return found


def _percentiles(samples: FloatArray, error: float) -> tuple[Interval, float]:
    """Interval and two-sided p-value of bootstrap samples: p is below ``error`` where the interval has no 0."""
    draws = len(samples)
    ranked = np.sort(samples)
    outside = max(1, int(np.ceil((draws + 1) * error / 2)) - 1)
    tail = min(int(np.sum(samples <= 0)), int(np.sum(samples >= 0)))
    return Interval(float(ranked[outside - 1]), float(ranked[-outside])), min(1.0, 2 * (1 + tail) / (draws + 1))
