"""What a target answers about similar nodes: the others, weighted by how similar their features are to the node's.

A model answers better about a node that it was trained on, and also about nodes similar to it. Besides, every model
happens to be surer in some regions than other models. Both show in its answers about similar nodes, and neither is the
node's own membership. So the answer that the similar nodes predict can be subtracted.

The similarity K of all pairs of nodes is never built, only multiplied with, in time and memory in proportion to the
non-zero features. (K + penalty) x = b is solved by conjugate gradients, which need few steps once the few directions in
which K is large are treated separately (a randomized Nystroem preconditioner: Frangella, Tropp and Udell, SIAM
J. Matrix Anal. Appl. 44, 2023). On a GPU sparse products are our own: torch's add in an order that changes from run to
run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from torch import Tensor

from glasshouse.core.arrays import F32, FloatArray, IntArray
from glasshouse.core.randomness import generator
from glasshouse.core.threads import ONE_CORE

_AT_ONCE = 2**20  # non-zeros; each needs eight bytes per column for a moment


@dataclass(frozen=True, eq=False)
class RowSums:
    """A sparse matrix [n, m] by rows; each row is summed from its first to its last non-zero."""

    # consecutive rows, at most a million non-zeros each if no row has more: lengths of rows, columns, values
    parts: tuple[tuple[Tensor, Tensor, Tensor], ...]

    @classmethod
    def of(cls, matrix: Any, device: torch.device, *, at_once: int = _AT_ONCE) -> RowSums:
        """From a scipy matrix in compressed rows."""
        ends = matrix.indptr.astype(np.int64)
        parts, start = [], 0
        while start < matrix.shape[0]:
            end = max(int(np.searchsorted(ends, ends[start] + at_once, side="right")) - 1, start + 1)
            span = slice(ends[start], ends[end])
            places, numbers = matrix.indices[span].astype(np.int32), matrix.data[span].astype(np.float32)
            arrays = (np.diff(ends[start : end + 1]), places, numbers)
            lengths, columns, values = (torch.from_numpy(array).to(device) for array in arrays)
            parts.append((lengths, columns, values))
            start = end
        return cls(tuple(parts))

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Products [n, T] with dense [m, T]."""
        found = []
        for lengths, columns, values in self.parts:
            terms = dense.index_select(0, columns) * values[:, None]
            found.append(torch.segment_reduce(terms, "sum", lengths=lengths, axis=0, initial=0.0, unsafe=True))
        return torch.cat(found)


ROOM = 256 * 2**20  # bytes that one matrix of features may take
_DENSE = 0.1  # from this share of non-zeros on, dense products are faster than sparse ones
_COLUMNS = 32  # more at a time do not cost less each
_ROWS = 4096  # at a time, so that large copies are never made
_LEAST = 1e-12


def compact(features: Any, *, room: int = ROOM, copies: float = 1.0) -> Any:
    """Features [n, D] as a sparse or a dense matrix of float32, whichever is multiplied faster, within a given memory.

    They are of numpy, of torch on any device, or of scipy; ``copies`` times as many non-zeros must find ``room``
    [bytes], since something else will be made of the result. If there is no memory for them, their columns are added up
    with random signs to as many columns as there is memory for. The products of rows stay right on average.
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
    """Features of all nodes, divided by the largest, their mean subtracted; sparse blocks are never made dense."""

    blocks: tuple[Any, ...]  # for each class with nodes the features [n of the class, D], of scipy, numpy or torch
    turned: tuple[Any, ...]  # the same, transposed
    mean: Any  # [D, 1] what is subtracted from all features in products; zero for dense blocks, which are centred
    length: float  # mean squared length of a node's features before the mean is subtracted
    squares: FloatArray  # [n] squared lengths after it, nodes in order of class

    @classmethod
    def of(cls, features: Any, labels: IntArray, *, device: torch.device | None = None) -> Described:
        """From features [n, D], see `compact`, and labels [n]; with a device, torch computes products there."""
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
        blocks = [matrix[span] for span in _class_spans(labels)]
        moved, turned = (tuple(_on_device(one, device) for one in each) for each in (blocks, [b.T for b in blocks]))
        return cls(moved, turned, _on_device(mean.astype(np.float32)[:, None], device), length, squares)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Products of the features of all pairs of nodes, [n, n], as an operator; nodes are in order of class.

    The mean of its diagonal is 1 + constant. A product of two nodes counts in full if their labels agree, and
    -1 / (C - 1) times if they do not.
    """

    described: tuple[Described, ...]  # one or several sets of features
    weights: tuple[float, ...]  # how much each of them counts
    spans: tuple[slice, ...]  # where the nodes of each class are
    others: float  # 1 / (C - 1), or 0 for a single class
    constant: float  # what all nodes have in common, whatever their features

    @classmethod
    def of(cls, described: Sequence[Described], labels: IntArray, *, constant: float) -> Similarity:
        """Of one or several sets of features; each counts as if its mean squared length, not centred, were the same."""
        lengths = [max(part.length, _LEAST) for part in described]
        spread = sum(float(part.squares.mean()) / length for part, length in zip(described, lengths, strict=True))
        weights = tuple(1 / (length * max(spread, _LEAST)) for length in lengths)
        others = 1 / max(int(labels.max()), 1) if labels.max() else 0.0
        return cls(tuple(described), weights, _class_spans(labels), others, constant)

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


def _class_spans(labels: IntArray) -> tuple[slice, ...]:
    """Where the nodes of each class are once nodes are in order of class; classes without nodes are left out."""
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
    sparse = []
    for part in parts:
        places = part.nonzero(as_tuple=True)
        values = part[places].to(torch.float32).cpu().numpy()
        at = tuple(index.to(torch.int32).cpu().numpy() for index in places)
        sparse.append(csr_array((values, at), shape=part.shape))
    return csr_array(vstack(sparse, format="csr"))


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


def _on_device(block: Any, device: torch.device | None) -> Any:
    if device is None:
        return block
    return RowSums.of(block.tocsr(), device) if issparse(block) else torch.from_numpy(block).to(device)


_DIRECTIONS = 64  # that are treated separately
_STEPS = 200  # of conjugate gradients, at most
_ROUNDING = 1e-5  # of products in float32, next to the largest
_LEAST_CURVATURE = 1e-30


@dataclass(frozen=True, eq=False)
class Solver:
    """Solves (K + penalty) x = b for any b."""

    matrix: Similarity  # K
    penalty: float  # added to its diagonal
    large: Any  # [n, r] orthonormal directions in which K is large, float32 on the device
    shrink: Any  # [r] how much shorter they are made before a step, less 1

    @classmethod
    def of(cls, matrix: Similarity, count: int, *, penalty: float) -> Solver:
        """For a matrix of ``count`` rows."""
        with ONE_CORE:
            start = generator(0, "directions").normal(size=(count, min(_DIRECTIONS, count)))
            image = _in_parts(matrix, start, lambda values: matrix @ values)
            half = image @ _inverse_root(start.T @ image)  # half @ half.T is near the matrix
            products = half.T @ half
            large = half @ _inverse_root(products)
            values = np.linalg.eigvalsh(products)[-large.shape[1] :] + penalty
        return cls(matrix, penalty, _placed(large, matrix.device), _placed(values[0] / values - 1, matrix.device))

    def solved(self, right: FloatArray, *, tolerance: float) -> FloatArray:
        """Find x [n, T] from b [n, T]; the remainder of each column is at most ``tolerance`` times as long as it."""
        with ONE_CORE:
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
            length = going * gain / (step * image).sum(0).clip(_LEAST_CURVATURE)
            found, rest = found + length * step, rest - length * image
            near = self._shrunk(rest)
            before, gain = gain, (rest * near).sum(0)
            step = near + gain / before.clip(_LEAST_CURVATURE) * step
        return found

    def _shrunk(self, values: Any) -> Any:
        """Values [n, T] with their parts in the large directions made shorter."""
        return values + self.large @ (self.shrink[:, None] * (self.large.T @ values))


def _inverse_root(products: FloatArray) -> FloatArray:
    """Columns [r, s] that turn a symmetric matrix [r, r] into an identity [s, s]: its s clearly positive directions."""
    sizes, turn = np.linalg.eigh((products + products.T) / 2)
    clear = sizes > _ROUNDING * sizes[-1]
    return np.asarray(turn[:, clear] / np.sqrt(sizes[clear]))


def _in_parts(matrix: Similarity, values: FloatArray, function: Any) -> FloatArray:
    """What a function makes of values [n, T], a few columns at a time, in float32 on the matrix's device."""
    found = np.empty(values.shape)
    for start in range(0, values.shape[1], matrix.columns):
        part = slice(start, start + matrix.columns)
        result = function(_placed(values[:, part], matrix.device))
        found[:, part] = result if matrix.device is None else result.cpu().numpy()
    return found


def _placed(values: FloatArray, device: torch.device | None) -> Any:
    return _on_device(np.ascontiguousarray(values, dtype=np.float32), device)


_PENALTY = 0.3  # of the ridge; values from 0.1 to 1 work equally well on simulated targets
_CONSTANT = 0.3  # what all nodes have in common, whatever their features
_FURTHEST = 10.0  # a surprise of more standard deviations counts as this many
_PROBES = (32, 128)  # random signs per node, at least and at most, that give the weight of its own answer
_SIGNS = 400_000  # of all nodes, unless these are fewer than the least per node
_TOLERANCE = 3e-3  # of what the regression leaves unsolved
_ROUGHLY = 2e-2  # the same where random signs cause larger errors


@dataclass(frozen=True, eq=False)
class SimilarNodes:
    """Ridge regression on the features of nodes, one slope per class, prepared for the answers of any target.

    Confidence in one class is doubt in the others: what raises the margin of a node of one class lowers that of a
    similar node of another class. So the `Similarity` of two nodes depends on whether their labels agree.

    Time and memory grow with the nodes and their non-zero features. Each set of features and the work on them take at
    most 256 MiB (`ROOM`); sparse features on a GPU twice that.
    """

    solver: Solver
    order: NDArray[np.intp]  # [n] the nodes in order of class
    own: FloatArray  # [n] the weight of a node's own answer in its fitted value, nodes in order of class

    @classmethod
    def of(cls, described: Sequence[Described], labels: IntArray) -> SimilarNodes:
        """From one or several sets of features and labels [n] of all nodes."""
        similarity = Similarity.of(described, labels, constant=_CONSTANT)
        solver = Solver.of(similarity, len(labels), penalty=_PENALTY)
        return cls(solver, np.argsort(labels, kind="stable"), _own(solver, similarity.diagonal))

    def expected(self, surprise: FloatArray) -> FloatArray:
        """The surprise that each node's kin predict for it, [n] or [T, n]; the node's own answer is left out.

        A surprise is how much surer a target is of a node than its references, in standard deviations: of one target
        [n], or of T targets [T, n], which takes a fraction of the time of one after the other.
        """
        rows = np.clip(np.atleast_2d(surprise), -_FURTHEST, _FURTHEST)
        beyond = np.empty_like(rows)
        solved = self.solver.solved(rows[:, self.order].T, tolerance=_TOLERANCE).T
        beyond[:, self.order] = _PENALTY * solved / (1 - self.own)
        return np.asarray((rows - beyond).reshape(np.shape(surprise)))


def _own(solver: Solver, diagonal: FloatArray) -> FloatArray:
    """The weight [n] of a node's own answer in its fitted value: 1 - penalty * (the inverse's diagonal).

    The inverse's diagonal is the mean over random signs of sign * (the inverse applied to signs), so it is right on
    average; it differs from the true one by about 5 % with 128 signs and 10 % with 32. Up to 128 nodes it is exact.
    The ``diagonal`` is the similarity [n] of every node with itself.
    """
    count, (least, most) = len(diagonal), _PROBES
    if count <= most:
        inverse = np.diag(solver.solved(np.eye(count), tolerance=_TOLERANCE))
    else:
        probes = int(np.clip(_SIGNS // count, least, most))
        signs = generator(0, "probes").choice([-1.0, 1.0], size=(count, probes))
        inverse = (signs * solver.solved(signs, tolerance=_ROUGHLY)).mean(axis=1)
    return np.asarray(1 - _PENALTY * np.clip(inverse, 1 / (diagonal + _PENALTY), 1 / _PENALTY))
