"""What one simulated target says about an attack, in a few numbers; all that thresholds and figures need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.privacy.guesses import shares_right
from glasshouse.evaluation.roc import checked
from glasshouse.evaluation.sorted_scores import SortedScores
from glasshouse.threads import side_by_side

__all__ = ["Scored", "TriedTarget", "tried_targets"]

Scored = Sequence[tuple[FloatArray, BoolArray]]  # scores [N] and members [N] of each simulated target


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
    values, mask = checked(scores, members)
    ordered = SortedScores.of(values, mask)
    rates = [ordered.rate_at(fpr) for fpr in fprs]
    return TriedTarget(
        auc=ordered.area,
        rates=tuple(rate for rate, _ in rates),
        reached=tuple(reached for _, reached in rates),
        cuts=tuple(ordered.cut_at(fpr) for fpr in fprs),
        first_fpr=ordered.first_fpr,
        shares_right=shares_right(values, mask, ordered=ordered),
    )
