"""Short hashes that identify data: one of all arrays together, and one per record."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["digest_arrays", "row_digests"]


def digest_arrays(arrays: Sequence[Any]) -> str:
    """A short hash of numpy arrays or torch tensors, in their order: of their types, shapes and values.

    Example:
        >>> digest_arrays([np.zeros(2)]) == digest_arrays([np.zeros((2, 1))])
        False
    """
    digest = hashlib.sha256()
    for one in arrays:
        values = _array(one)
        digest.update(f"{values.dtype}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def row_digests(x: Any, y: NDArray[Any]) -> NDArray[np.bytes_]:
    """[N] a short hash of each row, with its label; rows of anything that a population may hold.

    Example:
        >>> len(set(row_digests(np.zeros((3, 2)), np.array([0, 0, 1])).tolist()))
        2
    """
    if hasattr(x, "tocsr"):
        rows = x.tocsr()
        rows.sort_indices()
        parts: Iterator[bytes] = (
            rows.indices[start:stop].tobytes() + rows.data[start:stop].tobytes()
            for start, stop in itertools.pairwise(rows.indptr)
        )
    else:
        parts = (row.tobytes() for row in _array(x))  # one at a time: all at once would be a second copy of the data
    return np.array([_short_hash(part, label) for part, label in zip(parts, y.tolist(), strict=True)])


def _array(values: Any) -> NDArray[Any]:
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    return array.astype(str) if array.dtype == object else array


def _short_hash(content: bytes, label: float) -> bytes:
    return hashlib.blake2b(content + str(label).encode(), digest_size=8).hexdigest().encode()
