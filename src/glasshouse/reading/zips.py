"""Zip archives judged by their directory, before anything in them is unpacked."""

from __future__ import annotations

import zipfile
from collections import Counter
from typing import IO

from glasshouse.errors import InputError, shortened
from glasshouse.reading.memory import check_memory

__all__ = ["judge_zip", "open_zip"]

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
