"""Pick one number of an attack by how well it separates members of simulated targets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence
from glasshouse.numerics import area_under_roc

__all__ = ["best_share"]

Statistic = Callable[[float], FloatArray]


def best_share(evidence: Evidence, statistic_of: Callable[[Evidence], Statistic], *, name: str) -> float:
    """The number in [0, 1] with the largest mean AUC over all simulated targets, to two decimals.

    The paper (App. A) searches with cross-validation over shadow models acting as targets; for one number a
    grid is enough, first in tenths, then in hundredths around the best.

    Args:
        evidence: the pool to simulate targets from; the target's own losses are not used.
        statistic_of: from a simulated target's evidence to a function number -> scores [N].
        name: name of the number, for the error if the pool is too small.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.tile([[1, 0], [0, 1]], (2, 50)).astype(bool)
        >>> loss = rng.gamma(1.0, size=(4, 100))
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> best_share(evidence, lambda simulated: lambda share: -simulated.target_loss, name="scale")
        0.0
    """
    try:
        simulated = [(statistic_of(one.view), one.members) for one in evidence.simulated()]
    except InputError as error:
        raise InputError(f"{name}: cannot be tuned automatically. {error} Or give {name} a number.") from error

    def quality(share: float) -> float:
        return float(np.mean([area_under_roc(statistic(share), members) for statistic, members in simulated]))

    best = max(np.linspace(0.0, 1.0, 11).round(2).tolist(), key=quality)
    near = np.arange(best - 0.09, best + 0.095, 0.01).round(2)
    # the best of the coarse grid comes first: among equals, the rounder number is kept
    return float(max([best, *near[(near >= 0) & (near <= 1)].tolist()], key=quality))
