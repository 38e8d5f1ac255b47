"""One file, complete or absent: written beside its final place, synced, renamed into it, and the name synced too."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.store.leftovers import unfinished_file
from glasshouse.store.modes import file_mode, make_folders, sync_folder

__all__ = ["NOTHING_LEFT", "said_clearly", "write_file"]

NOTHING_LEFT = "Nothing was left behind."


def write_file(path: Path | str, content: bytes | str, *, once: bool = False) -> Path:
    """Write a file so that a reader finds the old content or the new one, never a part.

    Only the owner can read it, unless asked otherwise (`sharing`). A link in its place is replaced, not followed.

    Args:
        path: of the file; folders above it are made.
        content: text is written as UTF-8.
        once: for keys: a file that is there already is not replaced but refused, and nothing is ever shared.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_file(Path(folder) / "note.txt", "kept").read_text()
        'kept'
    """
    path = Path(path)
    # a name of a file that is no UTF-8 has halves of characters, which JSON and HTML show as escapes
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    with said_clearly(path):
        make_folders(path.parent)
        with unfinished_file(path) as (handle, unfinished):
            left = memoryview(data)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
            if once:
                _put_new(unfinished, path)
            else:
                unfinished.chmod(file_mode())
                unfinished.replace(path)
            sync_folder(path.parent)
    return path


def _put_new(unfinished: Path, path: Path) -> None:
    """Give a file its name if the name is free, in one step; on a disk without hard links in two."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise
        unfinished.replace(path)


@contextlib.contextmanager
def said_clearly(path: Path, *, kept: str = NOTHING_LEFT) -> Iterator[None]:
    """Make the system's error while a place is written one line, with what became of the place."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}. {kept}") from error
