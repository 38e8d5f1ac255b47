"""Products of a sparse matrix with dense columns on a GPU that give the same bytes in every run.

torch's own products of sparse matrices there add in an order that changes from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["RowSums"]

_AT_ONCE = 2**20  # non-zeros; each needs eight bytes per column for a moment


@dataclass(frozen=True, eq=False)
class RowSums:
    """A sparse matrix [n, m] by rows; each row is summed from its first to its last non-zero.

    Args:
        parts: consecutive rows, at most a million non-zeros each if no row has more: lengths of rows, columns, values.

    Example:
        >>> from scipy.sparse import csr_array
        >>> RowSums.of(csr_array([[0, 2.0], [0, 0], [3.0, 1.0]]), torch.device("cpu")) @ torch.tensor([[1.0], [10.0]])
        tensor([[20.],
                [ 0.],
                [13.]])
    """

    parts: tuple[tuple[Tensor, Tensor, Tensor], ...]

    @classmethod
    def of(cls, matrix: Any, device: torch.device, *, at_once: int = _AT_ONCE) -> RowSums:
        """From a scipy matrix in compressed rows."""
        ends = matrix.indptr.astype(np.int64)
        parts, start = [], 0
        while start < matrix.shape[0]:
            end = max(int(np.searchsorted(ends, ends[start] + at_once, side="right")) - 1, start + 1)
            span = slice(ends[start], ends[end])
            lengths = torch.from_numpy(np.diff(ends[start : end + 1])).to(device)
            columns = torch.from_numpy(matrix.indices[span].astype(np.int32)).to(device)
            parts.append((lengths, columns, torch.from_numpy(matrix.data[span].astype(np.float32)).to(device)))
            start = end
        return cls(tuple(parts))

    @property
    def nbytes(self) -> int:
        """Bytes of all its numbers."""
        return sum(one.nbytes for part in self.parts for one in part)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Products [n, T] with dense [m, T]."""
        found = []
        for lengths, columns, values in self.parts:
            terms = dense.index_select(0, columns) * values[:, None]
            found.append(torch.segment_reduce(terms, "sum", lengths=lengths, axis=0, initial=0.0, unsafe=True))
        return torch.cat(found)
