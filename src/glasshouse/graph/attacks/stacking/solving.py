"""Solve (K + penalty) x = b for a similarity K of all pairs of nodes that is never built: conjugate gradients.

They need few steps once the few directions in which K is large are treated separately (a randomized Nystroem
preconditioner: Frangella, Tropp and Udell, SIAM J. Matrix Anal. Appl. 44, 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from glasshouse.arrays import FloatArray
from glasshouse.randomness import generator

__all__ = ["Operator", "Solver"]

_DIRECTIONS = 64  # that are treated separately
_STEPS = 200  # of conjugate gradients, at most
_ROUNDING = 1e-5  # of products in float32, next to the largest
_LEAST = 1e-30


class Operator(Protocol):
    """A symmetric matrix [n, n] without negative eigenvalues, which can only be multiplied with."""

    @property
    def device(self) -> torch.device | None:
        """Where torch computes products; None for numpy and scipy."""

    @property
    def columns(self) -> int:
        """How many columns to multiply with at a time, as memory allows."""

    def __matmul__(self, values: Any) -> Any:
        """Products [n, T] with values [n, T] of float32 on the device."""


@dataclass(frozen=True, eq=False)
class Solver:
    """Solves (K + penalty) x = b for any b.

    Args:
        matrix: K.
        penalty: added to its diagonal.
        large: [n, r] orthonormal directions in which K is large, float32 on the device.
        shrink: [r] how much shorter they are made before a step, less 1.

    Example:
        >>> from glasshouse.graph.attacks.stacking.similarity import Described, Similarity
        >>> labels = np.array([0, 0, 1])
        >>> features = Described.of(np.array([[1.0], [3.0], [2.0]]), labels)
        >>> solver = Solver.of(Similarity.of([features], labels, constant=0.3), 3, penalty=0.3)
        >>> solver.solved(np.array([[1.0], [-1.0], [0.0]]), tolerance=1e-3).round(2).ravel()  # 1 / (3 + 0.3) of it
        array([ 0.3, -0.3,  0. ])
    """

    matrix: Operator
    penalty: float
    large: Any
    shrink: Any

    @classmethod
    def of(cls, matrix: Operator, count: int, *, penalty: float) -> Solver:
        """For a matrix of ``count`` rows."""
        with threadpool_limits(1, user_api="blas"):  # so that the result does not depend on the number of cores
            start = generator(0, "directions").normal(size=(count, min(_DIRECTIONS, count)))
            image = _in_parts(matrix, start, lambda values: matrix @ values)
            half = image @ _inverse_root(start.T @ image)  # half @ half.T is near the matrix
            products = half.T @ half
            large = half @ _inverse_root(products)
        values = np.linalg.eigvalsh(products)[-large.shape[1] :] + penalty
        return cls(matrix, penalty, _placed(large, matrix.device), _placed(values[0] / values - 1, matrix.device))

    def solved(self, right: FloatArray, *, tolerance: float) -> FloatArray:
        """Find x [n, T] from b [n, T]; the remainder of each column is at most ``tolerance`` times as long as it."""
        with threadpool_limits(1, user_api="blas"):
            return _in_parts(self.matrix, right, lambda values: self._solved(values, tolerance))

    def _solved(self, right: Any, tolerance: float) -> Any:
        """Columns are independent of each other; a column that is solved stands still."""
        found, rest = right * 0, right
        step = near = self._shrunk(rest)
        gain = (rest * near).sum(0)
        goal = tolerance**2 * (rest * rest).sum(0)
        for _ in range(_STEPS):
            going = (rest * rest).sum(0) > goal
            if not going.any():
                break
            image = self.matrix @ step + self.penalty * step
            length = going * gain / (step * image).sum(0).clip(_LEAST)
            found, rest = found + length * step, rest - length * image
            near = self._shrunk(rest)
            before, gain = gain, (rest * near).sum(0)
            step = near + gain / before.clip(_LEAST) * step
        return found

    def _shrunk(self, values: Any) -> Any:
        """Values [n, T] with their parts in the large directions made shorter."""
        return values + self.large @ (self.shrink[:, None] * (self.large.T @ values))


def _inverse_root(products: FloatArray) -> FloatArray:
    """Columns [r, s] that turn a symmetric matrix [r, r] into an identity [s, s]: its s clearly positive directions."""
    sizes, turn = np.linalg.eigh((products + products.T) / 2)
    clear = sizes > _ROUNDING * sizes[-1]
    return np.asarray(turn[:, clear] / np.sqrt(sizes[clear]))


def _in_parts(matrix: Operator, values: FloatArray, function: Any) -> FloatArray:
    """What a function makes of values [n, T], a few columns at a time, in float32 on the matrix's device."""
    found = np.empty(values.shape)
    for start in range(0, values.shape[1], matrix.columns):
        part = slice(start, start + matrix.columns)
        result = function(_placed(values[:, part], matrix.device))
        found[:, part] = result if matrix.device is None else result.cpu().numpy()
    return found


def _placed(values: FloatArray, device: torch.device | None) -> Any:
    array = np.ascontiguousarray(values, dtype=np.float32)
    return array if device is None else torch.from_numpy(array).to(device)
