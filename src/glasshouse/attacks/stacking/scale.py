"""Features without outliers and on one scale, for learners that add them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from glasshouse.arrays import FloatArray

__all__ = ["Scale"]


@dataclass(frozen=True, eq=False)
class Scale:
    """Clip features [R, F] at quantiles of the rows that were learned from, then make their mean 0 and their width 1.

    So nothing is extrapolated: a value beyond these quantiles counts as the quantile.

    Example:
        >>> scale = Scale.of(np.array([[0.0], [1.0], [2.0], [99.0]]), tail=0.34)
        >>> scale.apply(np.array([[1.5], [99.0], [1e9]])).round(2)
        array([[0.],
               [1.],
               [1.]])
    """

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, *, tail: float) -> Self:
        """From rows [R, F] to learn from; ``tail`` is the share of them that is clipped at each end."""
        # column by column: copies of all rows are most of the memory of a fit
        low, high = np.transpose([np.quantile(column, [tail, 1 - tail]) for column in rows.T])
        clipped = np.clip(rows, low, high)
        return cls(low, high, clipped.mean(axis=0), clipped.std(axis=0) + 1e-9)

    def apply(self, rows: FloatArray) -> FloatArray:
        """Scaled rows, [R, F]."""
        scaled = np.clip(rows, self.low, self.high)
        scaled -= self.centre
        scaled /= self.width
        return scaled
