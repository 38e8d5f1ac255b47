"""A sparse matrix that is constant while weights are trained: products forward and backward, on CPU and GPU."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

__all__ = ["SparseMatrix"]


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A constant matrix in compressed rows, and its transpose for the backward pass.

    Example:
        >>> matrix = SparseMatrix.of(scipy.sparse.eye(2, format="csr"))
        >>> matrix @ torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        tensor([[1., 2.],
                [3., 4.]])
    """

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
