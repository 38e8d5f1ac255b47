"""What every reader does: look at the file before it is opened, and turn whatever a library raises into one line.

Zip archives are judged by their directory. Large arrays stay in their file: the system reads what is looked at.
"""

from __future__ import annotations

import stat
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.errors import InputError, first_line, shortened
from glasshouse.io.limits import check_memory


@contextmanager
def guarded(place: Path | str, *, what: str, advice: str = "") -> Iterator[None]:
    """Around everything that a library does with a stranger's file: each fault becomes an `InputError`.

    There is no list of exceptions to keep complete: a damaged file can make a library fail in any way.

    Args:
        place: the file, as an error names it.
        what: what the file should be: ``"a .npz file"``.
        advice: what to do about it, a sentence.

    Example:
        >>> with guarded("run.json", what="JSON"):
        ...     [][1]
        Traceback (most recent call last):
        glasshouse.InputError: run.json: is damaged, or is not JSON (IndexError: list index out of range).
    """
    after = f" {advice}" if advice else ""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{place}: needs more memory than there is, or than the limit allows. If the file is right, raise the "
            f"limit, such as --memory 8GiB, or use a smaller file."
        ) from error
    except RecursionError as error:
        raise InputError(f"{place}: is nested too deeply to be {what}.{after}") from error
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror or first_line(error)}.{after}") from error
    except Exception as error:
        raise InputError(f"{place}: is damaged, or is not {what} ({_told(error)}).{after}") from error


def _told(error: Exception) -> str:
    """Somebody else's error in one line; pydantic says what is wrong in the third."""
    lines = [line.strip() for line in str(error)[:2000].splitlines() if line.strip()]
    told = shortened(": ".join(lines[:3]), most=200, quoted=False).rstrip(".: ")
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


def file_size(path: Path, *, missing: str = "there is no such file.") -> int:
    """The size of a plain file in bytes; a folder, a device, a pipe and a name that is too long are refused.

    Example:
        >>> file_size(Path("/"))
        Traceback (most recent call last):
        glasshouse.InputError: /: is a folder; give a file.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a zero in it
        raise InputError(f"{path}: {missing}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from error
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: is a folder; give a file.")
    if not stat.S_ISREG(found.st_mode):  # reading a pipe may never end
        raise InputError(f"{path}: is not a plain file; copy its content into one.")
    return found.st_size


def read_content(path: Path, *, times: int = 1, missing: str = "there is no such file.") -> bytes:
    """The content of a plain file, if what is made of it stays within the limit on memory.

    Args:
        path: of the file.
        times: how much larger than the file it is once it is read, at most; 0 for a file of any size.
        missing: what is said if there is no such file.
    """
    check_memory(times * file_size(path, missing=missing), place=str(path), what="once read it may take")
    with guarded(path, what="a file"):
        return path.read_bytes()


_DIRECTORY = 2**20  # bytes of the list of members: some thousands of them
_COUNT_FIELD, _SIZE_FIELD = 4, 5  # of what `zipfile` finds at the end of an archive


def open_zip(file: IO[bytes], *, place: str, allowed: int = 0) -> zipfile.ZipFile:
    """An archive whose members are few enough to list, and judged by `judge_zip`."""
    end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if not end:
        raise InputError(f"{place}: is not a complete archive: its end is missing.")
    if end[_SIZE_FIELD] > _DIRECTORY:  # Python would read it all at once
        raise InputError(f"{place}: lists too many members to be an archive of arrays.")
    archive = zipfile.ZipFile(file)
    if len(archive.infolist()) != end[_COUNT_FIELD]:  # Python stops at a gap, and what follows would be lost
        raise InputError(f"{place}: is damaged: it lists {len(archive.infolist())} of {end[_COUNT_FIELD]} members.")
    judge_zip(archive, place=place, allowed=allowed)
    return archive


def judge_zip(archive: zipfile.ZipFile, *, place: str, allowed: int = 0) -> None:
    """Refuse members that are too large together, are there twice, are encrypted, or are packed in a rare way.

    Args:
        archive: opened.
        place: the file, for errors.
        allowed: bytes that members may always unpack to, whatever the limit on memory.

    Example:
        >>> import io
        >>> with zipfile.ZipFile(io.BytesIO(), "w") as archive:
        ...     archive.writestr("a", "1")
        ...     judge_zip(archive, place="e.npz")
    """
    members = archive.infolist()
    twice = [name for name, count in Counter(one.filename for one in members).items() if count > 1]
    if twice:
        raise InputError(f"{place}: {shortened(twice[0])} is in it twice; save it once.")
    for one in members:
        if one.flag_bits & 1:
            raise InputError(f"{place}: {shortened(one.filename)} is encrypted; save it without a password.")
        if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # others are unpacked as a whole, however large they turn out to be
            raise InputError(
                f"{place}: {shortened(one.filename)} is packed in an unusual way; write it with numpy.savez."
            )
    size = sum(one.file_size for one in members)
    check_memory(size if size > allowed else 0, place=place, what="its members unpack to")


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
