"""What simulated targets say about an attack before the target's members are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.roc import checked
from glasshouse.evaluation.sorted_scores import SortedScores
from glasshouse.evaluation.tried import Scored, TriedTarget, tried_targets

__all__ = ["SimulatedFigures", "rate_with_ties", "simulated_figures"]


@dataclass(frozen=True, kw_only=True)
class SimulatedFigures:
    """How strong an attack is on the simulated targets of a pool: a choice by it does not use the target.

    Args:
        targets: how many shadow models played the target.
        auc: mean area under their ROC curves.
        strengths: mean true-positive rate per allowed false-positive rate, one for each wanted rate: at ties that keep
            a rate from being reached, the TPR when ties are broken at random.
        shares_right: mean share of right guesses for each way to guess that a bound on ε may use.
    """

    targets: int
    auc: float
    strengths: tuple[float, ...]
    shares_right: tuple[float, ...] = ()


def simulated_figures(
    scored: Scored, fprs: Sequence[float], *, tried: Sequence[TriedTarget] | None = None
) -> SimulatedFigures:
    """The figures of an attack from simulated targets that are already scored: pairs of scores [N] and members [N].

    ``tried`` are the `tried_targets` of the same targets and rates, if they are known already.

    Example:
        >>> pair = (np.arange(20.0), np.arange(20) >= 10)
        >>> figures = simulated_figures([pair, pair], [0.1])
        >>> figures.targets, figures.auc, figures.strengths
        (2, 1.0, (1.0,))
    """
    tried = tried_targets(scored, fprs) if tried is None else tried
    return SimulatedFigures(
        targets=len(scored),
        auc=float(np.mean([one.auc for one in tried])),
        strengths=tuple(float(np.mean([one.rates[place] for one in tried])) for place in range(len(fprs))),
        shares_right=tuple(np.mean([one.shares_right for one in tried], axis=0).tolist()),
    )


def rate_with_ties(scores: FloatArray, members: BoolArray, fpr: float) -> tuple[float, bool]:
    """TPR at a rate, and whether a threshold reaches it; if not, the TPR there when ties are broken at random.

    Example:
        >>> rate_with_ties(np.zeros(20), np.arange(20) >= 10, 0.1)
        (0.1, False)
    """
    return SortedScores.of(*checked(scores, members)).rate_at(fpr)
