"""Short hashes that identify data: one of all arrays together, and one per record."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import as_array

_SHORT = 256  # characters; longer texts are hashed one by one, not in the room of the longest
_EXACT = 2**53  # whole numbers up to this are equal to a float64
_BLOCK = 2**24  # bytes that are converted at a time


def digest_arrays(arrays: Sequence[Any], *, features: Sequence[Any] = ()) -> str:
    """A short hash of arrays or tensors: types, shapes and values; in ``features``, whole numbers count as floats."""
    digest = hashlib.sha256()
    for one, by_value in (*((one, True) for one in features), *((one, False) for one in arrays)):
        values = as_array(one)
        if values.dtype.kind == "U":
            long = values.dtype.itemsize > 4 * _SHORT  # a fixed-width array should not hold such texts
        else:
            long = values.dtype == object and max((len(str(text)) for text in values.reshape(-1)), default=0) > _SHORT
        if long:
            digest.update(f"text{values.shape}".encode())
            for text in values.reshape(-1):
                digest.update(_sized(text))
            continue
        values = values.astype(str) if values.dtype == object else values
        kind = np.dtype(np.float64) if by_value and _equals_floats(values) else values.dtype
        digest.update(f"{kind}{values.shape}".encode())
        for block in _blocks(values):
            digest.update(np.ascontiguousarray(block, dtype=kind).tobytes())
    return digest.hexdigest()[:16]


def row_digests(x: Any, y: NDArray[Any]) -> NDArray[np.bytes_]:
    """[N] a short hash of each row, with its label: of an array, a tensor, a sparse matrix, or a list of these."""
    columns = [_row_bytes(part) for part in (x if isinstance(x, list) else [x])]
    rows = (b"".join(parts) for parts in zip(*columns, strict=True))
    whole = (row + str(label).encode() for row, label in zip(rows, y.tolist(), strict=True))
    return np.array([hashlib.blake2b(one, digest_size=8).hexdigest().encode() for one in whole])


def _row_bytes(x: Any) -> Iterator[bytes]:
    """The bytes of each row; whole numbers as floats, where they are equal."""
    if hasattr(x, "tocsr"):
        rows = x.tocsr()
        rows.sort_indices()
        for start, stop in itertools.pairwise(rows.indptr):
            yield rows.indices[start:stop].tobytes() + rows.data[start:stop].tobytes()
        return
    if hasattr(x, "contents"):  # records that are not rows of an array
        yield from x.contents()
        return
    values = as_array(x)
    if values.dtype.kind in "OU":
        for row in values.reshape(len(values), -1):
            yield b"".join(map(_sized, row))
        return
    kind = np.dtype(np.float64) if _equals_floats(values) else values.dtype
    for block in _blocks(values):  # one at a time: all at once would be a second copy of the data
        yield from (row.tobytes() for row in np.asarray(block, dtype=kind))


def _sized(text: Any) -> bytes:
    """A text with its length, so that "ab", "c" and "a", "bc" differ."""
    content = str(text).encode("utf-8", "surrogatepass")
    return f"{len(content)}:".encode() + content


def _equals_floats(values: NDArray[Any]) -> bool:
    """Whether all are whole numbers or truth values that a float64 holds exactly."""
    if values.dtype.kind not in "iub":
        return False
    return values.itemsize < 8 or not values.size or max(abs(int(values.min())), abs(int(values.max()))) <= _EXACT


def _blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The rows of an array, some at a time."""
    if values.ndim == 0:
        yield values
        return
    step = max(1, _BLOCK // max(1, values[:1].size * 8))
    for start in range(0, len(values), step):
        yield values[start : start + step]
