"""What simulated targets say about an attack before the target's members are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.privacy.guesses import shares_right
from glasshouse.evaluation.roc import auc, roc
from glasshouse.evaluation.thresholds import Scored

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


def simulated_figures(scored: Scored, fprs: Sequence[float]) -> SimulatedFigures:
    """The figures of an attack from simulated targets that are already scored: pairs of scores [N] and members [N].

    Example:
        >>> pair = (np.arange(20.0), np.arange(20) >= 10)
        >>> figures = simulated_figures([pair, pair], [0.1])
        >>> figures.targets, figures.auc, figures.strengths
        (2, 1.0, (1.0,))
    """
    return SimulatedFigures(
        targets=len(scored),
        auc=float(np.mean([auc(*pair) for pair in scored])),
        strengths=tuple(float(np.mean([rate_with_ties(*pair, fpr)[0] for pair in scored])) for fpr in fprs),
        shares_right=tuple(np.mean([shares_right(*pair) for pair in scored], axis=0).tolist()),
    )


def rate_with_ties(scores: FloatArray, members: BoolArray, fpr: float) -> tuple[float, bool]:
    """TPR at a rate, and whether a threshold reaches it; if not, the TPR there when ties are broken at random.

    Example:
        >>> rate_with_ties(np.zeros(20), np.arange(20) >= 10, 0.1)
        (0.1, False)
    """
    curve = roc(scores, members)
    point = curve.point_at(fpr)
    if point:
        return float(curve.tpr[point]), True
    return float(curve.tpr[1]) * fpr / float(curve.fpr[1]), False
