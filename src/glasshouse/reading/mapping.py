"""Arrays that stay in their file: the system reads what is looked at, and may drop it again when memory is short."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGE", "map_member", "map_values"]

LARGE = 2**20  # bytes from which on an array is mapped; smaller ones are read
_LOCAL, _SIGNATURE = 30, b"PK\x03\x04"  # the header before a member of a zip archive, without its name
_CHUNK = 2**20


def map_values(path: Path, *, offset: int, shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
    """Numbers of a file from ``offset`` on, not read yet. Writing to them does not change the file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "numbers"
        ...     _ = path.write_bytes(np.arange(3.0).tobytes())
        ...     map_values(path, offset=8, shape=(2,), kind=np.dtype(float))
        array([1., 2.])
    """
    return np.asarray(np.memmap(path, dtype=kind, mode="c", offset=offset, shape=shape))


def map_member(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, *, start: int, shape: tuple[int, ...], kind: Any
) -> NDArray[Any]:
    """An array of an archive that is stored as it is; its checksum is compared, in one pass that keeps nothing.

    Args:
        path: of the archive.
        archive: opened.
        member: that holds the array, not compressed.
        start: bytes of the array's own header.
        shape: of the array, judged before.
        kind: its type.
    """
    with archive.open(member) as file:
        while file.read(_CHUNK):  # compared at the end
            pass
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL)
    if len(header) < _LOCAL or not header.startswith(_SIGNATURE):
        raise ValueError("a member without its header")
    name, extra = struct.unpack("<HH", header[26:])
    return map_values(path, offset=member.header_offset + _LOCAL + name + extra + start, shape=shape, kind=kind)
