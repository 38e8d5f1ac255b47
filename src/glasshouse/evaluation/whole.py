"""Figures of the whole population, estimated from a random sample of it: intervals that know how much was left out.

The usual intervals (`glasshouse.evaluation.intervals`) treat the audited records as drawn from an endless population.
They stay right for a sample. The ones here are about one number: what an audit of all records would have found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import hypergeom, norm

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.errors import InputError
from glasshouse.evaluation.intervals import Interval, delong, placements
from glasshouse.evaluation.roc import ROC, allowed_wrong, checked, roc

__all__ = ["Sampled", "WholeFigures", "WholeRate", "estimate_whole"]

_LEVELS = 65  # numbers of non-members above the threshold that are tried; more change no printed digit
_FAR = 8.0  # standard deviations beyond which nothing is left


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """How audited records were drawn from all records: within strata, each record with the same chance.

    Args:
        strata: [n] the stratum of each audited record.
        sizes: [H] how many of all records each stratum has.
        members: how many of all records are members of the target.

    Example:
        >>> Sampled(strata=np.array([0, 0, 1]), sizes=np.array([60, 30]), members=45).sentence("nodes")
        'All figures are estimated from a sample of 3 of 90 nodes, drawn at random within strata of degree and class.'
    """

    strata: IntArray
    sizes: IntArray
    members: int

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


class WholeRate(NamedTuple):
    """The true-positive rate of all members, at a threshold that accuses a wanted share of all non-members."""

    wanted: float
    tpr: float
    interval: Interval


@dataclass(frozen=True)
class WholeFigures:
    """What an audit of all records would find, as a sample tells it.

    Args:
        audited: n, how many records were audited.
        records: N, how many there are.
        auc: the estimate of the AUC.
        auc_interval: of the AUC over all records.
        rates: for each wanted false-positive rate.
        confidence: of each interval.
    """

    audited: int
    records: int
    auc: float
    auc_interval: Interval
    rates: tuple[WholeRate, ...]
    confidence: float


def estimate_whole(
    scores: ArrayLike, members: ArrayLike, sampled: Sampled, *, fprs: Sequence[float], confidence: float = 0.95
) -> WholeFigures:
    """Estimate the AUC and true-positive rates of all records from the scores of a sample.

    Every record was drawn with the same chance, so the sample's own AUC is the estimate. That of a true-positive rate
    is as often too high as too low (the sample's own is too high: `tpr_estimates`). Scores, members and the graph are
    fixed; what is random is the draw alone. An interval has no width if nothing was left out.

    Args:
        scores: [n] of the audited records.
        members: [n] which of them trained the target.
        sampled: how they were drawn.
        fprs: wanted false-positive rates.
        confidence: of each interval by itself.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.arange(400) % 2 == 0
        >>> drawn = Sampled(strata=np.repeat([0, 1], 200), sizes=np.array([1000, 1000]), members=1000)
        >>> found = estimate_whole(rng.normal(members, 1.0), members, drawn, fprs=[0.1])
        >>> found.auc_interval.low < 0.76 < found.auc_interval.high  # Φ(1 / √2)
        True
    """
    values, mask = checked(scores, members)
    if len(sampled.strata) != len(values) or not int(mask.sum()) <= sampled.members <= sampled.records:
        raise InputError("sampled: it does not describe how these records were drawn.")
    curve = roc(values, mask)
    return WholeFigures(
        audited=len(values),
        records=sampled.records,
        auc=curve.area,
        auc_interval=_auc_interval(values, mask, sampled, confidence=confidence),
        rates=tuple(
            WholeRate(
                fpr,
                _tpr_estimate(curve, fpr, sampled),
                _tpr_interval(curve, fpr, sampled, confidence),
            )
            for fpr in fprs
        ),
        confidence=confidence,
    )


def _auc_interval(scores: FloatArray, members: BoolArray, sampled: Sampled, *, confidence: float) -> Interval:
    """The AUC as a mean of one number per record (its placement), whose variance is taken within strata.

    The AUC of a sample differs from that of all records by about the mean of (placement - AUC) / (share of its side).
    """
    above, below = placements(scores, members)
    area = float(above.mean())
    share = sampled.members / sampled.records
    parts = np.empty(len(scores))
    parts[members], parts[~members] = (above - area) / share, (below - area) / (1 - share)
    spread = _stratified_variance(parts, sampled)
    if area in (0.0, 1.0) or spread == 0.0:
        everyone = len(scores) == sampled.records
        return Interval(area, area) if everyone else delong(scores, members, confidence=confidence)
    reach = float(norm.ppf((1 + confidence) / 2)) * np.sqrt(spread) / (area * (1 - area))
    return Interval(float(expit(logit(area) - reach)), float(expit(logit(area) + reach)))


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
    Given J, the number M of audited members above it is known up to those between two neighbouring non-members. The
    ends are the fewest and the most members above it, of all N₁, that these M do not contradict, over all J. Strata are
    not used: they only make a sample better, so an interval is a little too wide.
    """
    outsiders, insiders = sampled.records - sampled.members, sampled.members
    above, weights = _above_threshold(allowed_wrong(fpr, outsiders), outsiders, curve.non_members)
    wrong, right = np.rint(curve.fpr * curve.non_members), np.rint(curve.tpr * curve.members)
    last = np.searchsorted(wrong, above, side="right") - 1
    first = np.searchsorted(wrong, wrong[last], side="left")
    fewest, most = right[first], right[last]
    tail = (1 - confidence) / 2

    def chance(total: int) -> float:
        """That a sample shows at least as many members above the threshold, if all records have ``total`` of them."""
        each = [hypergeom.sf(count, insiders, total, curve.members) for count in (fewest - 1, most)]
        return float((weights * (each[0] + each[1])).sum() / 2)

    low = _first(lambda total: chance(total) >= tail, 0, insiders)
    high = _first(lambda total: chance(total) > 1 - tail, 0, insiders + 1) - 1
    return Interval(low / insiders, max(low, high) / insiders)


def _tpr_estimate(curve: ROC, fpr: float, sampled: Sampled) -> float:
    """The median of the same distribution; where all records were audited, what they show."""
    low, high = _tpr_interval(curve, fpr, sampled, 0.0)
    # the threshold of all records lies between two audited non-members: halfway where few were audited, and just above
    # the lower one where all were
    return low + (1 + curve.non_members / (sampled.records - sampled.members)) / 2 * (high - low)


def _above_threshold(allowed: int, outsiders: int, audited: int) -> tuple[FloatArray, FloatArray]:
    """How many audited non-members are above the threshold of all, [J], and the probability of each, [J]."""
    middle, spread = audited * allowed / outsiders, np.sqrt(audited * allowed / outsiders) + 1
    low, high = max(0, allowed + audited - outsiders), min(allowed, audited)
    every = np.arange(max(low, int(middle - _FAR * spread)), min(high, int(middle + _FAR * spread)) + 1)
    weights = hypergeom.pmf(every, outsiders, allowed, audited)
    if len(every) <= _LEVELS:
        return every.astype(np.float64), weights / weights.sum()
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    at = np.searchsorted(np.cumsum(weights) / weights.sum(), levels)
    return every[at].astype(np.float64), np.full(_LEVELS, 1 / _LEVELS)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest whole number from ``low`` to ``high`` at which a rising condition holds; ``high`` if none does."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
