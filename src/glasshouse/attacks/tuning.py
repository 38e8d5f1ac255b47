"""Pick one number of an attack by how well it separates members of simulated targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.attacks.expected import SimulatedConfidence, simulated_confidence
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence, Mode
from glasshouse.numerics import area_under_roc

__all__ = ["Statistic", "best_share"]

Statistic = Callable[[float], FloatArray]
_FEW = 4000  # records that show which numbers are clearly not the best
_TARGETS = 16  # with fewer, their spread is not known well enough for that, and all records take little time
_CLEARLY = 6.0  # standard errors


def best_share(
    evidence: Evidence, statistic_of: Callable[[FloatArray, FloatArray], Statistic], *, mode: Mode, name: str
) -> float:
    """The number in [0, 1] with the largest mean AUC over all simulated targets, to two decimals.

    The paper (App. A) searches with cross-validation over shadow models acting as targets; for one number a
    grid is enough, first in tenths, then in hundredths around the best. In a large pool some of the records first show
    which numbers are clearly worse; only the others are compared on all records.

    Args:
        evidence: the pool to simulate targets from; the target's own losses are not used.
        statistic_of: from a simulated target's losses and expected log-confidences, [N] each, to a function
            number -> scores [N].
        mode: of the expected log-confidences.
        name: name of the number, for the error if the pool is too small.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.tile([[1, 0], [0, 1]], (2, 50)).astype(bool)
        >>> loss = rng.gamma(1.0, size=(4, 100))
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> best_share(evidence, lambda loss, expected: lambda share: -loss, mode="online", name="scale")
        0.0
    """
    try:
        simulated = list(simulated_confidence(evidence, mode))
    except InputError as error:
        raise InputError(f"{name}: cannot be tuned automatically. {error} Or give {name} a number.") from error
    step = -(-evidence.records // _FEW) if len(simulated) >= _TARGETS else 1
    few = [SimulatedConfidence(one.loss[::step], one.expected[::step], one.members[::step]) for one in simulated]

    def areas(share: float, targets: Sequence[SimulatedConfidence]) -> list[float]:
        return [area_under_roc(statistic_of(one.loss, one.expected)(share), one.members) for one in targets]

    def best(shares: list[float]) -> float:
        kept = shares if step == 1 else _not_clearly_worse(np.array([areas(share, few) for share in shares]), shares)
        return kept[0] if len(kept) == 1 else max(kept, key=lambda share: float(np.mean(areas(share, simulated))))

    tenth = best(np.linspace(0.0, 1.0, 11).round(2).tolist())
    near = np.arange(tenth - 0.09, tenth + 0.095, 0.01).round(2)
    # the best of the coarse grid comes first: among equals, the rounder number is kept
    return float(best([tenth, *near[(near >= 0) & (near <= 1)].tolist()]))


def _not_clearly_worse(areas: FloatArray, shares: list[float]) -> list[float]:
    """The shares whose areas [shares, targets] are not clearly smaller than those of the best, target by target."""
    behind = areas[areas.mean(axis=1).argmax()] - areas
    error = behind.std(axis=1, ddof=1) / np.sqrt(behind.shape[1])
    return [share for share, worse in zip(shares, behind.mean(axis=1) > _CLEARLY * error, strict=True) if not worse]
