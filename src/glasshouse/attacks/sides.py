"""In-models and out-models of each record: their number, mean margin and spread around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray

__all__ = ["Moments", "moments"]


class Moments(NamedTuple):
    """Number of models, mean of their margins, and summed squares around it, [N] each."""

    models: FloatArray
    mean: FloatArray
    squares: FloatArray


def moments(values: FloatArray, who: BoolArray) -> Moments:
    """Moments over the chosen entries of each column.

    Args:
        values: [K, N], such as margins of the shadow models.
        who: [K, N] which of them count; every column needs at least one.

    Example:
        >>> moments(np.array([[1.0], [3.0], [9.0]]), np.array([[True], [True], [False]]))
        Moments(models=array([2.]), mean=array([2.]), squares=array([2.]))
    """
    count = who.sum(axis=0).astype(np.float64)
    mean = np.where(who, values, 0.0).sum(axis=0) / count
    squares = np.where(who, (values - mean) ** 2, 0.0).sum(axis=0)
    return Moments(count, mean, squares)
