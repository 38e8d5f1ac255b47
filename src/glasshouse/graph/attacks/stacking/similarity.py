"""How similar the features of all pairs of nodes are: a matrix [n, n] that is never built, only multiplied with.

Every product takes time and memory in proportion to the non-zero features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse, vstack
from torch import Tensor

from glasshouse.arrays import F32, FloatArray, IntArray
from glasshouse.graph.attacks.stacking.row_sums import RowSums
from glasshouse.randomness import generator

__all__ = ["ROOM", "Described", "Similarity", "class_spans", "compact"]

ROOM = 256 * 2**20  # bytes that one matrix of features may take
_DENSE = 0.1  # from this share of non-zeros on, dense products are faster than sparse ones
_COLUMNS = 32  # more at a time do not cost less each
_ROWS = 4096  # at a time, so that large copies are never made
_LEAST = 1e-12


def compact(features: Any, *, room: int = ROOM, copies: float = 1.0) -> Any:
    """Features [n, D] as a sparse or a dense matrix of float32, whichever is multiplied faster, within a given memory.

    If there is no memory for them, their columns are added up with random signs to as many columns as there is memory
    for. The products of rows stay right on average.

    Args:
        features: [n, D] a numpy array, a torch tensor on any device, or a scipy matrix.
        room: bytes that the result may take.
        copies: how many times as many non-zeros must find room, since something else will be made of the result.

    Example:
        >>> compact(np.eye(100)).nnz, compact(np.ones((3, 2))).shape, compact(np.ones((3, 50)), room=48).shape
        (100, (3, 2), (3, 4))
    """
    matrix = _matrix(features)
    count, width = matrix.shape
    dense = 4 * count * width
    needed = min(8 * copies * matrix.nnz, dense) if issparse(matrix) else dense
    if needed > room:
        return _fewer_columns(matrix, max(room // (4 * count), 1))
    wasteful = issparse(matrix) and matrix.nnz >= _DENSE * count * width
    return matrix.toarray() if wasteful and dense <= room else matrix


@dataclass(frozen=True, eq=False)
class Described:
    """Features of all nodes, their mean subtracted, in one block per class; sparse blocks are never made dense.

    They are divided by the largest of them.

    Args:
        blocks: for each class with nodes the features [n of the class, D], of scipy, numpy or torch.
        turned: the same, transposed.
        mean: [D, 1] what is subtracted from all features in products; zero for dense blocks, which are centred.
        length: mean squared length of a node's features before the mean is subtracted.
        squares: [n] squared lengths after it, nodes in order of class.

    Example:
        >>> described = Described.of(np.array([[1.0], [3.0]]), np.array([0, 0]))
        >>> described.length, described.squares
        (0.5555..., array([0.11..., 0.11...]))
    """

    blocks: tuple[Any, ...]
    turned: tuple[Any, ...]
    mean: Any
    length: float
    squares: FloatArray

    @classmethod
    def of(cls, features: Any, labels: IntArray, *, device: torch.device | None = None) -> Described:
        """From features [n, D], see `compact`, and labels [n].

        Args:
            features: sparse or dense.
            labels: classes.
            device: where torch computes products; by default numpy and scipy do, on one core.
        """
        matrix = features[np.argsort(labels, kind="stable")]  # a copy
        numbers = matrix.data if issparse(matrix) else matrix
        numbers /= max(float(abs(numbers).max(initial=0)), _LEAST)  # so that squares stay finite
        mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        squares = _squares(matrix)
        length = float(squares.mean())
        if issparse(matrix):
            squares = np.maximum(squares - 2 * (matrix @ mean) + mean @ mean, 0.0)
        else:
            matrix -= mean.astype(matrix.dtype)
            mean, squares = np.zeros_like(mean), _squares(matrix)
        blocks = [matrix[span] for span in class_spans(labels)]
        column = mean.astype(np.float32)[:, None]
        if device is None:
            return cls(tuple(blocks), tuple(block.T for block in blocks), column, length, squares)
        moved, turned = (tuple(_on_device(one, device) for one in each) for each in (blocks, [b.T for b in blocks]))
        return cls(moved, turned, torch.from_numpy(column).to(device), length, squares)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Products of the features of all pairs of nodes, [n, n], as an operator; nodes are in order of class.

    The mean of its diagonal is 1 + constant. A product of two nodes counts in full if their labels agree, and
    -1 / (C - 1) times if they do not.

    Args:
        described: one or several sets of features.
        weights: how much each of them counts.
        spans: where the nodes of each class are.
        others: 1 / (C - 1), or 0 for a single class.
        constant: what all nodes have in common, whatever their features.

    Example:
        >>> labels = np.array([0, 0, 1])
        >>> described = Described.of(np.array([[1.0], [3.0], [2.0]]), labels)
        >>> similarity = Similarity.of([described], labels, constant=0.3)
        >>> (similarity @ np.eye(3, dtype=np.float32)).round(1)
        array([[ 1.8, -1.2, -0.3],
               [-1.2,  1.8, -0.3],
               [-0.3, -0.3,  0.3]], dtype=float32)
    """

    described: tuple[Described, ...]
    weights: tuple[float, ...]
    spans: tuple[slice, ...]
    others: float
    constant: float

    @classmethod
    def of(cls, described: Sequence[Described], labels: IntArray, *, constant: float) -> Similarity:
        """Of one or several sets of features; each counts as if its mean squared length, not centred, were the same."""
        lengths = [max(part.length, _LEAST) for part in described]
        spread = sum(float(part.squares.mean()) / length for part, length in zip(described, lengths, strict=True))
        weights = tuple(1 / (length * max(spread, _LEAST)) for length in lengths)
        others = 1 / max(int(labels.max()), 1) if labels.max() else 0.0
        return cls(tuple(described), weights, class_spans(labels), others, constant)

    @property
    def diagonal(self) -> FloatArray:
        """Of every node with itself, [n]."""
        parts = zip(self.weights, self.described, strict=True)
        return np.asarray(self.constant + sum(weight * part.squares for weight, part in parts))

    @property
    def device(self) -> torch.device | None:
        """Where torch computes products; None for numpy and scipy."""
        mean = self.described[0].mean
        return mean.device if isinstance(mean, torch.Tensor) else None

    @property
    def columns(self) -> int:
        """How many columns to solve for at a time: about eight arrays of each are alive, within the `ROOM`."""
        slopes = len(self.spans) * max(len(part.mean) for part in self.described)
        rows: int = self.spans[-1].stop + slopes
        return max(1, min(_COLUMNS, ROOM // (8 * 4 * rows)))

    def __matmul__(self, values: Any) -> Any:
        """Products [n, T] with values [n, T] of float32 on the device of the features."""
        totals = [values[span].sum(0) for span in self.spans]  # [T] each
        found = values * 0
        for span, total in zip(self.spans, self._mixed(totals), strict=True):
            found[span] += self.constant * total
        for weight, part in zip(self.weights, self.described, strict=True):
            pairs = zip(self.spans, part.turned, totals, strict=True)
            sums = [turned @ values[span] - part.mean * total for span, turned, total in pairs]  # [D, T] each
            for span, block, slopes in zip(self.spans, part.blocks, self._mixed(sums), strict=True):
                found[span] += weight * (block @ slopes - (part.mean * slopes).sum(0))
        return found

    def _mixed(self, sums: list[Any]) -> list[Any]:
        """For each class its own sum less a share of the sums of all other classes."""
        share = self.others * sum(sums)
        return [(1 + self.others) * own - share for own in sums]


def class_spans(labels: IntArray) -> tuple[slice, ...]:
    """Where the nodes of each class are once nodes are in order of class; classes without nodes are left out.

    Example:
        >>> class_spans(np.array([2, 0, 2]))
        (slice(0, 1, None), slice(1, 3, None))
    """
    ends = np.cumsum(np.unique(labels, return_counts=True)[1]).tolist()
    return tuple(slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True))


def _matrix(features: Any) -> Any:
    """A float32 matrix, sparse if few of its numbers are not zero; a dense one that needs no copy is not copied."""
    if issparse(features):
        return csr_array(features, dtype=np.float32)
    tensor = torch.as_tensor(features).detach()
    parts = tensor.split(_ROWS)
    if sum(int(torch.count_nonzero(part)) for part in parts) >= _DENSE * tensor.numel():
        return tensor.to(torch.float32).cpu().numpy()
    return csr_array(vstack([_sparse(part) for part in parts], format="csr"))


def _sparse(tensor: Tensor) -> csr_array:
    places = tensor.nonzero(as_tuple=True)
    values = tensor[places].to(torch.float32).cpu().numpy()
    return csr_array((values, tuple(index.to(torch.int32).cpu().numpy() for index in places)), shape=tensor.shape)


def _fewer_columns(matrix: Any, columns: int) -> F32:
    """Columns added up with random signs, [n, columns]."""
    count, width = matrix.shape
    random = generator(0, "columns")
    places = (np.arange(width), random.integers(0, columns, width))
    mixing = csr_array((random.choice(np.array([-1, 1], dtype=np.float32), width), places), shape=(width, columns))
    found = np.empty((count, columns), dtype=np.float32)
    for start in range(0, count, _ROWS):
        mixed = matrix[start : start + _ROWS] @ mixing
        found[start : start + _ROWS] = mixed.toarray() if issparse(mixed) else mixed
    return found


def _squares(matrix: Any) -> FloatArray:
    """Squared lengths of rows, [n]."""
    if issparse(matrix):
        return np.asarray(matrix.power(2).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", matrix, matrix), dtype=np.float64)


def _on_device(block: Any, device: torch.device) -> Any:
    return RowSums.of(block.tocsr(), device) if issparse(block) else torch.from_numpy(block).to(device)
