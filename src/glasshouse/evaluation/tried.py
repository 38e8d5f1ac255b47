"""What one simulated target says about an attack, in a few numbers; all that thresholds and figures need of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib import Parallel, delayed

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.privacy.guesses import shares_right
from glasshouse.evaluation.roc import ROC, roc

__all__ = ["Scored", "TriedTarget", "cut_at", "rate_at", "side_by_side", "tried_targets"]

Scored = Sequence[tuple[FloatArray, BoolArray]]  # scores [N] and members [N] of each simulated target
_MANY = 1 << 16  # records; with fewer, threads take longer to start than the work
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class TriedTarget:
    """An attack on one simulated target. Its curve would take three times the memory of its scores.

    Args:
        auc: area under the ROC.
        rates: true-positive rate at each wanted false-positive rate, with ties broken at random where they must be.
        reached: for each wanted rate, whether a threshold reaches it.
        cuts: for each wanted rate, the lowest score that keeps it.
        first_fpr: the smallest false-positive rate that any threshold reaches.
        shares_right: shares of right guesses, for each way to guess that a bound on ε may use.
    """

    auc: float
    rates: tuple[float, ...]
    reached: tuple[bool, ...]
    cuts: tuple[float, ...]
    first_fpr: float
    shares_right: tuple[float, ...]


def tried_targets(scored: Scored, fprs: Sequence[float]) -> list[TriedTarget]:
    """Each simulated target in a few numbers, on all cores.

    Args:
        scored: pairs of scores [N] and members [N].
        fprs: wanted false-positive rates.

    Example:
        >>> import numpy as np
        >>> first, = tried_targets([(np.arange(20.0), np.arange(20) >= 10)], [0.1])
        >>> first.auc, first.rates, first.cuts
        (1.0, (1.0,), (9.0,))
    """
    return side_by_side(
        lambda pair: _tried(pair[0], pair[1], fprs), scored, records=len(scored[0][0]) if len(scored) else 0
    )


def _tried(scores: FloatArray, members: BoolArray, fprs: Sequence[float]) -> TriedTarget:
    curve = roc(scores, members)
    rates = [rate_at(curve, fpr) for fpr in fprs]
    return TriedTarget(
        auc=curve.area,
        rates=tuple(rate for rate, _ in rates),
        reached=tuple(reached for _, reached in rates),
        cuts=tuple(cut_at(curve, fpr) for fpr in fprs),
        first_fpr=float(curve.fpr[1]),
        shares_right=shares_right(scores, members),
    )


def rate_at(curve: ROC, fpr: float) -> tuple[float, bool]:
    """TPR at a rate, and whether a threshold reaches it; if not, the TPR there when ties are broken at random.

    Example:
        >>> rate_at(roc([1.0, 1.0, 1.0, 1.0], [1, 1, 0, 0]), 0.1)
        (0.1, False)
    """
    point = curve.point_at(fpr)
    if point:
        return float(curve.tpr[point]), True
    return float(curve.tpr[1]) * fpr / float(curve.fpr[1]), False


def cut_at(curve: ROC, fpr: float) -> float:
    """The lowest score that keeps the rate; above all scores if no record can be called a member.

    Example:
        >>> cut_at(roc([4.0, 3.0, 2.0, 1.0], [1, 0, 1, 0]), 0.5)
        2.0
    """
    point = curve.point_at(fpr)
    if point:
        return float(curve.thresholds[point])
    highest, *lower = curve.thresholds[1:3].tolist()  # half a step above: a mean of such values must not equal a score
    above = float(highest + (highest - lower[0] if lower else 1.0) / 2)
    return max(above, math.nextafter(highest, math.inf))  # beside a very large score, a half is nothing


def side_by_side(function: Callable[[Any], Found], items: Iterable[Any], *, records: int) -> list[Found]:
    """``function`` of each item, in the order of the items; on all cores if an item is about many records.

    Sorting and arithmetic of arrays run outside Python's lock, so threads are enough, and nothing is copied.

    Example:
        >>> side_by_side(abs, [-1, 2], records=10)
        [1, 2]
    """
    if records < _MANY:
        return [function(item) for item in items]
    return list(Parallel(n_jobs=-1, prefer="threads")(delayed(function)(item) for item in items))
