"""The door to ``.safetensors``: plain arrays of numbers after a header, which is judged before anything is mapped."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, raise_faults, shortened
from glasshouse.reading.doors import file_size, guarded
from glasshouse.reading.mapping import map_values
from glasshouse.reading.memory import check_memory

__all__ = ["read_safetensors"]

_WHAT = "a .safetensors file"
_HEADER = 2**20  # bytes of the list of arrays: thousands of them
_KINDS = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}


def read_safetensors(path: Path, *, only: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of a file, which stay in it until they are looked at.

    Args:
        path: of the file.
        only: names to give; others are judged and left alone. All by default.

    Example:
        >>> import tempfile
        >>> from safetensors.numpy import save_file
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_file({"x": np.ones((2, 3), dtype=np.float32)}, Path(folder) / "a.safetensors")
        ...     read_safetensors(Path(folder) / "a.safetensors")["x"].shape
        (2, 3)
    """
    size = file_size(path)
    check_memory(size, place=str(path), what="its arrays take")
    with guarded(path, what=_WHAT), path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_HEADER, size - 8):
            raise InputError(f"{path}: is damaged, or is not {_WHAT}: its header has {length} bytes.")
        listed = json.loads(file.read(length), object_pairs_hook=_each_once)
        listed.pop("__metadata__", None)
        raise_faults([f"{path}: {shortened(name)}: {fault}." for name, fault in _faults(listed, size - 8 - length)])
        found = {
            name: map_values(
                path,
                offset=8 + length + one["data_offsets"][0],
                shape=tuple(one["shape"]),
                kind=_KINDS[one["dtype"]],
            )
            for name, one in listed.items()
            if only is None or name in only
        }
    for name, values in found.items():
        if values.dtype.kind == "b" and (values.view(np.uint8) > 1).any():
            raise InputError(f"{path}: {shortened(name)}: is damaged: a truth value is neither 0 nor 1.")
    return found


def _faults(listed: dict[str, Any], size: int) -> list[tuple[str, str]]:
    """What is wrong with the arrays of a header; together they must be the content of ``size`` bytes, without gaps."""
    found, spans = [], []
    for name, one in listed.items():
        if one["dtype"] not in _KINDS:
            known = ", ".join(_KINDS)
            found.append((name, f"is of type {shortened(one['dtype'])}; save one of {known}"))
            continue
        shape, (start, stop) = one["shape"], one["data_offsets"]
        if not all(type(side) is int and side >= 0 for side in (*shape, start, stop)):
            raise ValueError("a size that is not a whole number")
        if not shape or 0 in shape:
            found.append((name, f"has shape {shortened(tuple(shape))}; save one entry per node or record"))
        elif stop - start != math.prod(shape) * _KINDS[one["dtype"]].itemsize:
            found.append((name, f"is damaged: its size does not fit its shape {shortened(tuple(shape))}"))
        spans.append((start, stop))
    ends = [0, *(stop for _, stop in sorted(spans))]
    if not found and ([start for start, _ in sorted(spans)] != ends[:-1] or ends[-1] != size):
        raise ValueError("arrays that overlap, or content that belongs to none")
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name twice")
    return made
