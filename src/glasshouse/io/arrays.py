"""Arrays from ``.npz`` and ``.safetensors``, judged by the header before anything is read, or mapped if it is large."""

from __future__ import annotations

import json
import math
import zipfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from glasshouse.core.errors import InputError, raise_faults, shortened
from glasshouse.io.guarded import each_once, file_size, guarded
from glasshouse.io.limits import check_memory

_NPZ = "a .npz file that numpy.savez wrote"
_KINDS = {
    "O": "pickled objects, which are refused since they can run code; save plain numbers or text",
    "S": "raw bytes; save text",
    "V": "records of several fields; save one array per field",
    "M": "dates; save numbers",
    "m": "times; save numbers",
    "c": "complex numbers; save real ones",
}
_OF_TEXT = 64  # bytes that Python needs for a text besides its letters
_DIRECTORY = 2**20  # bytes of the list of members: some thousands of them
_COUNT_FIELD, _SIZE_FIELD = 4, 5  # of what `zipfile` finds at the end of an archive
_LARGE = 2**20  # bytes from which on an array is mapped; smaller ones are read
_SAFETENSORS = "a .safetensors file"
_HEADER = 2**20  # bytes of the list of arrays: thousands of them
_TENSOR_KINDS = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
_TENSOR_KINDS |= {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def read_npz(
    path: Path,
    *,
    known: Collection[str] | None = None,
    only: Collection[str] | None = None,
    mapped: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """The arrays of an archive, or ``only`` some: numbers, truth values or text, of one dimension or more.

    Names that are not ``known`` are refused. Large arrays of numbers that are ``mapped`` and not compressed stay in the
    file, which must not change meanwhile: the system reads what is looked at.
    """
    place = str(path)
    check_memory(file_size(path), place=place, what="its members take")
    with guarded(path, what=_NPZ), path.open("rb") as file:
        opening = file.read(6)
        if opening == npy.MAGIC_PREFIX:
            raise InputError(f"{path}: is one array and not an archive of named arrays. Write it with numpy.savez.")
        with _open_zip(file, place=place) as archive:
            if not opening.startswith(b"PK"):  # libraries that go by the first bytes would read something else
                raise InputError(f"{path}: something stands before the archive. Write it with numpy.savez.")
            wanted = _wanted_members(archive, place, known, only)
            return {
                name: _read(archive, member, f"{place}: {name}", path if name in mapped else None)
                for name, member in wanted.items()
            }


def check_array(path: Path) -> tuple[int, ...]:
    """The shape of a ``.npy`` file of numbers, by its header: it fits the file's size, and the limit on memory."""
    size = file_size(path)
    with guarded(path, what="a .npy file that numpy.save wrote"), path.open("rb") as file:
        shape, _, kind = _header(file)
        start = file.tell()
    fault = _fault(shape, kind) or ("holds text; save numbers" if kind.kind == "U" else "")
    if fault:
        raise InputError(f"{path}: {fault}.")
    _check_size(size, start, shape, kind, place=str(path))
    check_memory(size, place=str(path), what="it takes")
    return shape


def check_sparse(path: Path, *, name: str = "", dense: bool = False) -> tuple[int, int]:
    """The shape of a sparse matrix that does not lead outside of itself: scipy's code follows it without looking.

    ``name``, such as ``"adj_"``, is before each array's name; ``dense`` if all entries will be written out.
    """
    parts = {part: f"{name}{part}" for part in ("indptr", "indices", "data", "shape")}
    found = read_npz(path, only=parts.values())
    if lost := [full for full in parts.values() if full not in found]:
        raise InputError(f"{path}: {lost[0]}: is missing, which a sparse matrix needs.")
    start, column, data, shape = (found[full] for full in parts.values())
    for part in ("indptr", "indices", "shape"):
        if found[parts[part]].dtype.kind not in "iu" or found[parts[part]].ndim != 1:
            raise InputError(f"{path}: {parts[part]}: is not a list of whole numbers.")
    if data.dtype.kind not in "biuf" or data.ndim != 1 or shape.shape != (2,) or (shape < 0).any():
        raise InputError(f"{path}: {parts['shape']}, {parts['data']}: are not those of a matrix of numbers.")
    rows, columns = map(int, shape)
    if len(start) != rows + 1 or start[0] != 0 or start[-1] != len(column) or (start[1:] < start[:-1]).any():
        raise InputError(f"{path}: {parts['indptr']}: does not divide {len(column)} entries into {rows} rows.")
    if len(data) != len(column):
        raise InputError(f"{path}: {parts['data']}: has {len(data)} entries for {len(column)} columns.")
    if len(column) and not (int(column.min()) >= 0 and int(column.max()) < columns):
        raise InputError(f"{path}: {parts['indices']}: lead outside of the matrix, which has {columns} columns.")
    if dense:
        check_memory(8 * rows * columns, place=str(path), what=f"{parts['data']} written out takes")
    return rows, columns


def _open_zip(file: IO[bytes], *, place: str) -> zipfile.ZipFile:
    """An archive whose members are few, each there once, not encrypted, and packed in a usual way."""
    end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if not end:
        raise InputError(f"{place}: is not a complete archive: its end is missing.")
    if end[_SIZE_FIELD] > _DIRECTORY:  # Python would read it all at once
        raise InputError(f"{place}: lists too many members to be an archive of arrays.")
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    if len(members) != end[_COUNT_FIELD]:  # Python stops at a gap, and what follows would be lost
        raise InputError(f"{place}: is damaged: it lists {len(members)} of {end[_COUNT_FIELD]} members.")
    for name, count in Counter(one.filename for one in members).items():
        if count > 1:
            raise InputError(f"{place}: {shortened(name)} is in it twice; save it once.")
    for one in members:
        if one.flag_bits & 1:
            raise InputError(f"{place}: {shortened(one.filename)} is encrypted; save it without a password.")
        if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # others are unpacked as a whole, however large they turn out to be
            raise InputError(
                f"{place}: {shortened(one.filename)} is packed in an unusual way; write it with numpy.savez."
            )
    check_memory(sum(one.file_size for one in members), place=place, what="its members unpack to")
    return archive


def _wanted_members(
    archive: zipfile.ZipFile, place: str, known: Collection[str] | None, only: Collection[str] | None
) -> dict[str, zipfile.ZipInfo]:
    """The members of these arrays, by name: arrays of plain values, by their headers, within the limit on memory."""
    named = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    if len(named) < len(archive.infolist()):
        raise InputError(f"{place}: has an array twice, with and without the ending .npy; save it once.")
    if unknown := sorted(named.keys() - set(known if known is not None else named)):
        listed = ", ".join(sorted(known or ()))
        raise InputError(f"{place}: {shortened(unknown[0])} is not a known array. Known: {listed}.")
    for member in archive.infolist():
        archive.open(member).close()  # compares its name with the one in the directory, also if it is not wanted
    wanted = {name: member for name, member in named.items() if only is None or name in only}
    faults, needed = [], 0
    for name, member in wanted.items():
        with guarded(f"{place}: {name}", what="an array"), archive.open(member) as file:
            if not member.filename.endswith(".npy"):
                faults.append(f"{place}: {name}: is not an array; write it with numpy.savez.")
                continue
            shape, _, kind = _header(file)
            if fault := _fault(shape, kind):
                faults.append(f"{place}: {name}: {fault}.")
                continue
            _check_size(member.file_size, file.tell(), shape, kind, place=f"{place}: {name}")
        # an empty array has no size, but what is as long as its other sides may be made later
        room = math.prod(max(1, side) for side in shape)
        needed += room * (kind.itemsize + (_OF_TEXT if kind.kind == "U" else 0))
    raise_faults(faults)
    check_memory(needed, place=place, what="its arrays take")
    return wanted


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(file)
    if version not in readers:
        raise ValueError(f"version {version} of the array format")
    return readers[version](file)


def _fault(shape: tuple[int, ...], kind: np.dtype[Any]) -> str:
    if kind.kind in _KINDS or kind.hasobject:
        return f"holds {_KINDS.get(kind.kind, _KINDS['O'])}"
    if kind.kind not in "biufU" or not kind.itemsize or kind.subdtype is not None:
        return f"is of type {kind}; save plain numbers or text"
    if not shape:
        return "is one number and not an array; save one entry per record"
    return ""


def _check_size(size: int, header: int, shape: tuple[int, ...], kind: np.dtype[Any], *, place: str) -> None:
    if any(side < 0 for side in shape) or header + math.prod(shape) * kind.itemsize != size:
        raise InputError(f"{place}: is damaged: its size does not fit its shape {shortened(shape)}.")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: str, mapped: Path | None) -> NDArray[Any]:
    if mapped is not None and member.compress_type == zipfile.ZIP_STORED and member.file_size >= _LARGE:
        with guarded(place, what="an array"), archive.open(member) as file:
            (shape, by_columns, kind), start = _header(file), file.tell()
            if not by_columns and kind.kind in "iuf" and kind.isnative:
                while file.read(_LARGE):  # to the end, where the checksum is compared; nothing is kept
                    pass
                content = file._orig_compress_start  # type: ignore[attr-defined]  # of a member that is stored as it is
                return _mapped(mapped, content + start, shape, kind)
    with guarded(place, what="an array"), archive.open(member) as file:
        values: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        file.read()  # to the end, where the checksum is compared
    _check_truth_values(values, place)
    if values.dtype.kind == "U":  # numpy does not look whether its numbers are letters of Unicode
        codes = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False).view(np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any():
            raise InputError(f"{place}: is damaged: it holds text that is not Unicode.")
    return values


def _mapped(path: Path, offset: int, shape: Sequence[int], kind: np.dtype[Any] | str) -> NDArray[Any]:
    """Numbers of a file from ``offset`` on, not read yet. Writing to them does not change the file."""
    return np.asarray(np.memmap(path, dtype=kind, mode="c", offset=offset, shape=tuple(shape)))


def _check_truth_values(values: NDArray[Any], place: str) -> None:
    if values.dtype.kind == "b" and (values.view(np.uint8) > 1).any():
        raise InputError(f"{place}: is damaged: a truth value is neither 0 nor 1.")


def read_safetensors(path: Path, *, only: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of a file, or only some, which stay in it until they are looked at; all are judged by the header."""
    size = file_size(path)
    check_memory(size, place=str(path), what="its arrays take")
    with guarded(path, what=_SAFETENSORS), path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_HEADER, size - 8):
            raise InputError(f"{path}: is damaged, or is not {_SAFETENSORS}: its header has {length} bytes.")
        listed = json.loads(file.read(length), object_pairs_hook=each_once)
        listed.pop("__metadata__", None)
        raise_faults([f"{path}: {shortened(name)}: {fault}." for name, fault in _faults(listed, size - 8 - length)])
        found = {
            name: _mapped(path, 8 + length + one["data_offsets"][0], one["shape"], _TENSOR_KINDS[one["dtype"]])
            for name, one in listed.items()
            if only is None or name in only
        }
    for name, values in found.items():
        _check_truth_values(values, f"{path}: {shortened(name)}")
    return found


def _faults(listed: dict[str, Any], size: int) -> list[tuple[str, str]]:
    """What is wrong with the arrays of a header; together they must be the content of ``size`` bytes, without gaps."""
    found, spans = [], []
    for name, one in listed.items():
        if one["dtype"] not in _TENSOR_KINDS:
            known = ", ".join(_TENSOR_KINDS)
            found.append((name, f"is of type {shortened(one['dtype'])}; save one of {known}"))
            continue
        shape, (start, stop) = one["shape"], one["data_offsets"]
        if not all(type(side) is int and side >= 0 for side in (*shape, start, stop)):
            raise ValueError("a size that is not a whole number")
        if not shape or 0 in shape:
            found.append((name, f"has shape {shortened(tuple(shape))}; save one entry per node or record"))
        elif stop - start != math.prod(shape) * np.dtype(_TENSOR_KINDS[one["dtype"]]).itemsize:
            found.append((name, f"is damaged: its size does not fit its shape {shortened(tuple(shape))}"))
        spans.append((start, stop))
    ends = [0, *(stop for _, stop in sorted(spans))]
    if not found and ([start for start, _ in sorted(spans)] != ends[:-1] or ends[-1] != size):
        raise ValueError("arrays that overlap, or content that belongs to none")
    return found
