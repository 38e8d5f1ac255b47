"""Draw training sets: every node with its own chance, and over all sets as often as that chance says."""

from __future__ import annotations

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray

__all__ = ["draw_training_sets"]


def draw_training_sets(chances: FloatArray, *, samples: int, random: np.random.Generator) -> BoolArray:
    """Training sets [M, n] for chances [n] of membership.

    Each set alone is like one drawn with a coin per node. But the sets share the coins: every node gets one number from
    each of M equal parts of [0, 1], in random order (a Latin hypercube), so that it is in M times its chance of the
    sets, rounded up or down. A mean over such sets varies far less: four of them are worth eight independent ones.

    Args:
        chances: one per node.
        samples: M.
        random: where the numbers come from.

    Example:
        >>> drawn = draw_training_sets(np.array([0.0, 0.5, 1.0]), samples=4, random=np.random.default_rng(0))
        >>> drawn.shape, drawn.sum(axis=0)
        ((4, 3), array([0, 2, 4]))
    """
    parts = random.random((samples, len(chances))).argsort(axis=0)
    return np.asarray((parts + random.random(parts.shape)) / samples < chances)
