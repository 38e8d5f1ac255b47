"""Folders and files that are made: only their owner reads them, since they name people; and names outlast a crash."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["SHARED_VARIABLE", "file_mode", "folder_mode", "make_folders", "sharing", "sync_folder"]

SHARED_VARIABLE = "GLASSHOUSE_SHARED"
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # some network disks have no sync of folders
_NO = ("", "0", "no", "false")

_SHARED: ContextVar[bool | None] = ContextVar("_SHARED", default=None)  # None: as the environment says


@contextmanager
def sharing(shared: bool = True) -> Iterator[None]:
    """Let others read what is written in the block, as far as the umask allows; without it, only the owner can.

    The environment variable ``GLASSHOUSE_SHARED=1`` does the same for a whole process.

    Example:
        >>> with sharing():
        ...     file_mode() & 0o600 == 0o600
        True
        >>> with sharing(False):
        ...     oct(file_mode())
        '0o600'
    """
    token = _SHARED.set(shared)
    try:
        yield
    finally:
        _SHARED.reset(token)


def file_mode() -> int:
    """The mode of a new file."""
    return 0o666 & ~_umask() if _shared() else 0o600


def folder_mode() -> int:
    """The mode of a new folder."""
    return 0o777 & ~_umask() if _shared() else 0o700


def make_folders(path: Path) -> None:
    """Make a folder and those above it, as far as they are missing, each with the mode of a new folder."""
    if not path.is_dir():
        if path.parent != path:
            make_folders(path.parent)
        path.mkdir(mode=folder_mode(), exist_ok=True)
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have the names in a folder written to the disk: a rename alone may be lost, or come before, when power fails.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sync_folder(Path(folder))
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:  # Windows opens no folders; a folder that may be written but not read cannot be synced
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(handle)


def _shared() -> bool:
    asked = _SHARED.get()
    return os.environ.get(SHARED_VARIABLE, "").lower() not in _NO if asked is None else asked


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
