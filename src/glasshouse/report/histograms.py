"""The distribution of an attack's scores, of members and of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray

__all__ = ["Histogram", "histogram_of"]

_BINS = 40
_TAIL = 0.005


@dataclass(frozen=True)
class Histogram:
    """Counts of scores in bins of equal width; scores outside count in the first and the last bin.

    Args:
        edges: [B + 1].
        members: [B] how many members; how many records if the members are not known.
        others: [B] how many others; None if the members are not known.
        cut: how many scores are outside the edges.
    """

    edges: tuple[float, ...]
    members: tuple[int, ...]
    others: tuple[int, ...] | None
    cut: int


def histogram_of(scores: FloatArray, members: BoolArray | None, *, posterior: bool = False) -> Histogram:
    """Counts of scores [N]; the bins cover [0, 1] for a probability, else all but the farthest scores on each side.

    Example:
        >>> found = histogram_of(np.array([0.1, 0.9, 0.9]), np.array([False, True, True]), posterior=True)
        >>> sum(found.members), sum(found.others), found.edges[-1]
        (2, 1, 1.0)
    """
    low, high = (0.0, 1.0) if posterior else (float(np.quantile(scores, q)) for q in (_TAIL, 1 - _TAIL))
    if not high > low:  # all scores are equal
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    inside = np.clip(scores, low, high)
    parts = [inside] if members is None else [inside[members], inside[~members]]
    counts = [tuple(np.histogram(part, edges)[0].tolist()) for part in parts]
    return Histogram(
        edges=tuple(edges.tolist()),
        members=counts[0],
        others=None if members is None else counts[1],
        cut=int((inside != scores).sum()),
    )
