"""A ROC as a report draws it: some of its points, each achievable, with a band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.evaluation import ROC, tpr_intervals

__all__ = ["Curve", "curve_of"]

_POINTS = 160
_COARSE = {"nodes": 21, "halvings": 13}  # enough for a picture


@dataclass(frozen=True)
class Curve:
    """Points of a ROC, FPR rising, each with the interval of the TPR at its FPR, point by point.

    Args:
        fpr: [P] false-positive rates.
        tpr: [P] true-positive rates.
        low: [P] lower ends of the TPR's intervals, each point by itself.
        high: [P] upper ends.
        members: how many members were scored.
        non_members: how many others; one over this number is the smallest rate that can be measured.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    members: int
    non_members: int


def curve_of(roc: ROC, *, confidence: float = 0.95) -> Curve:
    """At most ``points`` points, evenly spread over the logarithm of the FPR.

    At each grid rate it keeps the largest achievable FPR not above it, so nothing is interpolated. Between two kept
    points the true curve is at or above the step that is drawn.

    Example:
        >>> from glasshouse.evaluation import roc
        >>> curve_of(roc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])).tpr
        (0.5, 1.0, 1.0)
    """
    outside = roc.non_members
    grid = np.unique(np.rint(np.geomspace(1, outside, _POINTS - 1)).astype(np.int64))
    counts = np.rint(roc.fpr * outside).astype(np.int64)
    kept = np.unique(np.searchsorted(counts, np.concatenate([[0], grid]), side="right") - 1)
    # the true rate behind a count of 0 is not 0: half a non-member stands for it
    bands = tpr_intervals(roc, np.clip(counts[kept], 0.5, outside - 0.5) / outside, confidence=confidence, **_COARSE)
    return Curve(
        fpr=tuple(roc.fpr[kept].tolist()),
        tpr=tuple(roc.tpr[kept].tolist()),
        low=tuple(band.low for band in bands),
        high=tuple(band.high for band in bands),
        members=roc.members,
        non_members=outside,
    )
