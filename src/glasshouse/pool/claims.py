"""Which process trains which models: claims that the operating system releases when a process dies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError
from glasshouse.store import file_mode, make_folders

__all__ = ["Claims"]


class Claims:
    """Locks on one file, one byte per group of models. A killed process holds none.

    Args:
        path: the lock file; it stays, empty.
    """

    def __init__(self, path: Path) -> None:
        try:
            make_folders(path.parent)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), file_mode())
        except OSError as error:
            raise InputError(
                f"{path.parent}: a pool cannot be kept there: {error.strerror or error}. Choose another folder."
            ) from error

    def close(self) -> None:
        """Release all claims."""
        os.close(self._handle)

    @contextlib.contextmanager
    def claimed(self, group: int, *, wait: bool) -> Iterator[bool]:
        """Whether the group is ours while the block runs; with ``wait`` it waits until it is."""
        taken = self._lock(group, wait=wait)
        try:
            yield taken
        finally:
            if taken:
                self._unlock(group)

    def _lock(self, group: int, *, wait: bool) -> bool:
        fcntl = _fcntl()
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, group)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(self, group: int) -> None:
        fcntl = _fcntl()
        if fcntl is not None:
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, group)


def _fcntl() -> Any:
    """The module, if the system has it; on Windows two processes on one pool repeat each other's work instead."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl
