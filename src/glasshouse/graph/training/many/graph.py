"""The members' graphs of several models side by side, as one graph without edges between them.

Beside it what its training needs: products with a constant sparse matrix, and dropout with each model's own numbers.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch_geometric.data import Data

from glasshouse.core.arrays import FloatArray
from glasshouse.graph.models.calls import held_values
from glasshouse.graph.models.tensor_cache import once
from glasshouse.graph.programs.rows import share_dropped


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A constant matrix in compressed rows, and its transpose for the backward pass."""

    rows: Tensor  # [n, m] in torch's CSR layout
    columns: Tensor  # [m, n], its transpose

    @classmethod
    def of(cls, matrix: Any, *, device: torch.device | str = "cpu") -> SparseMatrix:
        """From a scipy matrix [n, m]."""
        return cls(_csr(matrix.tocsr(), device), _csr(matrix.T.tocsr(), device))

    @classmethod
    def of_edges(cls, edge_index: Tensor, weight: Tensor, *, nodes: int) -> SparseMatrix:
        """The matrix [nodes, nodes] that sums over incoming edges [2, E] with weights [E]."""
        source, target = edge_index.cpu().numpy()
        values = weight.detach().cpu().numpy().astype(np.float32)
        matrix = scipy.sparse.coo_matrix((values, (target, source)), shape=(nodes, nodes))
        return cls.of(matrix, device=edge_index.device)

    @functools.cached_property
    def _order(self) -> Tensor:
        """[non-zeros]: which value of ``rows`` each value of ``columns`` is."""
        numbers = np.arange(len(self.rows.values()))
        parts = (numbers, self.rows.col_indices().cpu().numpy(), self.rows.crow_indices().cpu().numpy())
        turned = scipy.sparse.csr_matrix(parts, shape=tuple(self.rows.shape)).T.tocsr()
        turned.sort_indices()
        return torch.from_numpy(turned.data).to(self.rows.device)

    def with_values(self, values: Tensor) -> SparseMatrix:
        """The same places with other values [non-zeros], by rows; gradients do not reach them."""
        return SparseMatrix(_like(self.rows, values), _like(self.columns, values[self._order]))

    def __matmul__(self, dense: Tensor) -> Tensor:
        """[n, c] from [m, c]; gradients reach ``dense``."""
        product: Tensor = _Product.apply(self.rows, self.columns, dense)  # type: ignore[no-untyped-call]
        return product


@dataclass(frozen=True)
class Deferred:
    """Rows that are not computed yet: a linear map of them may be cheaper than they are."""

    linear: Callable[[Tensor], Tensor]  # from weights [K, out, in] to the map of the rows [K, m, out]
    rows: Callable[[], Tensor]  # the rows themselves, [K, m, in]


class _Product(torch.autograd.Function):
    """A product that keeps the transpose; torch's own backward pass builds it again in each step."""

    @staticmethod
    def forward(context: Any, rows: Tensor, columns: Tensor, dense: Tensor) -> Tensor:
        context.columns = columns
        return _product(rows, dense)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _product(context.columns, gradients[0].contiguous())


def _like(matrix: Tensor, values: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(matrix.crow_indices(), matrix.col_indices(), values, size=matrix.shape)


def _product(matrix: Tensor, dense: Tensor) -> Tensor:
    result = dense.new_empty(matrix.shape[0], dense.shape[1])
    return torch.addmm(result, matrix, dense, beta=0, out=result)  # in place: a plain product copies it once


def _csr(matrix: Any, device: torch.device | str) -> Tensor:
    _hear_once_that_csr_is_new()
    matrix.sort_indices()
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int32)),  # MKL reads this type and would convert others each time
        torch.from_numpy(matrix.indices.astype(np.int32)),
        torch.from_numpy(matrix.data.astype(np.float32)),
        size=matrix.shape,
        device=device,
    )


@functools.cache
def _hear_once_that_csr_is_new() -> None:
    """Hide torch's warning, at the first CSR tensor of a process, that their interface may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))


def drop(hidden: Tensor, share: float, random: Sequence[torch.Generator]) -> Tensor:
    """``hidden`` [K, ...] with a share of its values set to 0 and the others scaled up.

    Model k draws only from generator k, so its result does not depend on the other models. 16 random bits decide about
    a value: on a CPU, seven times faster than torch's dropout, which took half of a step on a sparse graph.
    """
    if share == 0:
        return hidden
    each = hidden[0].numel()
    bits = torch.empty(len(hidden), -(-each // 4), dtype=torch.int64, device=hidden.device)
    for row, generator in zip(bits, random, strict=True):
        row.random_(-(2**63), None, generator=generator)
    kept = bits.view(torch.int16)[:, :each] >= round(share * 2**16) - 2**15
    return hidden * kept.reshape(hidden.shape).to(hidden.dtype).mul_(1 / (1 - share))


def drop_parts(values: Tensor, counts: Sequence[int], share: float, random: Sequence[torch.Generator]) -> Tensor:
    """The same for models with different numbers of values: ``counts`` rows of ``values`` [sum of counts, ...] each."""
    parts = zip(values.split(list(counts)), random, strict=True)
    return torch.cat([drop(part[None], share, [generator])[0] for part, generator in parts])


class DrawnBy(TorchFunctionMode):
    """While this is on, dropout of torch and of layers draws from one model's own stream; without one, it is idle."""

    def __init__(self, random: torch.Generator | None) -> None:
        super().__init__()
        self.random = random

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        share = share_dropped(func, args, kwargs or {})
        if share is None:
            return func(*args, **(kwargs or {}))
        values = args[0] if args else (kwargs or {})["input"]
        return values if self.random is None else drop(values[None], share, [self.random])[0]


Kept = TypeVar("Kept")

_SPARSE_BELOW = 0.1  # share of non-zero features below which a sparse product is faster than a dense one
_COLUMNS = 16  # a product with fewer columns, such as Cora's 7 classes, takes MKL three times as long as one with these


def padded_size(nodes: int) -> int:
    """The size of a graph after padding: isolated nodes without a label fill it up to the next multiple of 64.

    Graphs of nearly the same size so share a batch, and the size of one does not depend on the others in its batch.
    """
    return -(-nodes // 64) * 64


@dataclass(frozen=True, eq=False)
class BatchedGraph:
    """K graphs of m nodes each; node i of graph k is node k m + i of the whole.

    Example:
        >>> one = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1]))
        >>> graph = BatchedGraph.of([one, one])
        >>> graph.count, graph.size, graph.edge_index.tolist()
        (2, 64, [[0, 64], [1, 65]])
    """

    count: int  # K
    size: int  # m, the same for all after padding
    x: SparseMatrix | Tensor  # block-diagonal [K m, K features], or dense [K, m, features]
    edge_index: Tensor  # [2, E]
    labelled: Tensor  # [L] rows of the K m with a label
    y: Tensor  # [L]
    weight: Tensor  # [L] one over the number of labels in the row's own graph
    own: tuple[Data, ...] = ()  # the K graphs, not padded
    random: tuple[torch.Generator, ...] | None = None  # one stream per model; without them nothing is dropped
    _kept: dict[object, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, graphs: Sequence[Data], *, random: Sequence[torch.Generator] | None = None) -> BatchedGraph:
        """Graphs of one padded size, one per model; its generator draws its dropout, which without any is off."""
        size = padded_size(len(graphs[0].x))
        shift = [k * size for k in range(len(graphs))]
        labelled = [(graph.y >= 0).nonzero().squeeze(1) for graph in graphs]
        return cls(
            count=len(graphs),
            size=size,
            x=side_by_side([graph.x for graph in graphs], size),
            edge_index=torch.cat([graph.edge_index + k for graph, k in zip(graphs, shift, strict=True)], dim=1),
            labelled=torch.cat([rows + k for rows, k in zip(labelled, shift, strict=True)]),
            y=torch.cat([graph.y[rows] for graph, rows in zip(graphs, labelled, strict=True)]),
            weight=torch.cat([torch.full_like(rows, 1 / max(1, len(rows)), dtype=torch.float32) for rows in labelled]),
            own=tuple(graphs),
            random=None if random is None else tuple(random),
        )

    @property
    def nodes(self) -> int:
        """K m."""
        return self.count * self.size

    @functools.cached_property
    def edge_values(self) -> dict[str, Tensor]:
        """The values that the edges have, by name, [E] or [E, d] each."""
        names = [name for name, _ in held_values(self.own[0])] if self.own else []
        return {name: torch.cat([getattr(graph, name) for graph in self.own]) for name in names}

    @functools.cached_property
    def real(self) -> Tensor:
        """[K, 1, m]: 1 / nodes of the graph for its own nodes, 0 for those that fill it up; times rows, their mean."""
        shares = self.weight.new_zeros(self.count, 1, self.size)
        for k, graph in enumerate(self.own):
            shares[k, :, : len(graph.x)] = 1 / max(1, len(graph.x))
        return shares

    def kept(self, name: object, make: Callable[[], Kept]) -> Kept:
        """Something that is constant in training, made once for all layers that ask for it under one name."""
        return once(self._kept, name, make)

    def dense(self, x: SparseMatrix | Tensor | Deferred) -> Tensor:
        """[K, m, features] of any layout; that of the features themselves is kept."""
        if isinstance(x, Tensor | Deferred):
            return x if isinstance(x, Tensor) else x.rows()
        if x is self.x:
            return self.kept("dense", lambda: torch.stack([self.features_of(k) for k in range(self.count)]))
        return torch.stack([self.features_of(k, x) for k in range(self.count)])

    def features_of(self, index: int, x: SparseMatrix | Tensor | None = None) -> Tensor:
        """The features of one graph, or another matrix in their layout, dense [m, features]."""
        x = self.x if x is None else x
        if isinstance(x, Tensor):
            return x[index]
        width = x.rows.shape[1] // self.count
        start, end = index * self.size, (index + 1) * self.size
        pointers = x.rows.crow_indices()[start : end + 1].long()
        dense = x.rows.values().new_zeros(self.size, width)
        row = torch.repeat_interleave(torch.arange(self.size, device=dense.device), pointers.diff())
        entries = slice(int(pointers[0]), int(pointers[-1]))
        dense[row, x.rows.col_indices()[entries].long() - index * width] = x.rows.values()[entries]
        return dense

    def drop(self, x: SparseMatrix | Tensor | Deferred, share: float) -> SparseMatrix | Tensor:
        """Dropout with each model's own random numbers; of a sparse matrix only what is not 0 anyway is drawn."""
        x = x.rows() if isinstance(x, Deferred) else x
        if self.random is None or share == 0:
            return x
        if isinstance(x, Tensor):
            return drop(x, share, self.random)
        ends = x.rows.crow_indices()[:: self.size].long()
        return x.with_values(drop_parts(x.rows.values(), ends.diff().tolist(), share, self.random))

    def drop_edges(self, values: Tensor, counts: Sequence[int], share: float) -> Tensor:
        """Dropout on values of edges [E, ...] that lie model by model, ``counts`` of them for each."""
        return values if self.random is None else drop_parts(values, counts, share, self.random)

    def by_graph(self, rows: Tensor) -> Tensor:
        """[K, m, ...] from [K m, ...]."""
        return rows.view(self.count, self.size, *rows.shape[1:])

    def spread(self, matrix: SparseMatrix, hidden: Tensor) -> Tensor:
        """What nodes get from their neighbours, [K, m, c]: ``matrix`` [K m, K m] times ``hidden`` [K, m, c]."""
        return self.by_graph(matrix @ hidden.flatten(0, 1))

    def linear(self, x: SparseMatrix | Tensor | Deferred, weight: Tensor) -> Tensor:
        """[K, m, out]: features ``x`` times each model's own ``weight`` [K, out, in], transposed."""
        if isinstance(x, Deferred):
            return x.linear(weight)
        columns = weight.transpose(1, 2)  # [K, in, out]
        if isinstance(x, SparseMatrix):
            return self.by_graph(x @ columns.reshape(-1, columns.shape[2]))
        narrow = max(0, _COLUMNS - columns.shape[2])
        return torch.bmm(x, nn.functional.pad(columns, (0, narrow)))[:, :, : columns.shape[2]]


def side_by_side(features: Sequence[Tensor], size: int, *, sparse: bool | None = None) -> SparseMatrix | Tensor:
    """Features [m_k, f] of several graphs padded to ``size`` nodes: block-diagonal if sparse, else [K, size, f]."""
    filled = sum(int(x.count_nonzero()) for x in features) / max(1, sum(x.numel() for x in features))
    if filled < _SPARSE_BELOW if sparse is None else sparse:
        blocks = [_sparse_rows(x.cpu().numpy(), size) for x in features]
        return SparseMatrix.of(scipy.sparse.block_diag(blocks, format="csr"), device=features[0].device)
    dense = features[0].new_zeros(len(features), size, features[0].shape[1])
    for k, x in enumerate(features):
        dense[k, : len(x)] = x
    return dense


def _sparse_rows(x: FloatArray, size: int) -> scipy.sparse.csr_matrix:
    """The rows in compressed form, filled up to ``size``; scipy's own way from dense rows takes eight times as long."""
    places = np.flatnonzero(x != 0)
    rows, columns = np.divmod(places, x.shape[1])
    pointers = np.concatenate([[0], np.bincount(rows, minlength=size).cumsum()])
    return scipy.sparse.csr_matrix(
        (x.reshape(-1)[places], columns, pointers), shape=(size, x.shape[1]), dtype=np.float32
    )
