"""Who may read what is written: its owner alone, since scores, evidence and manifests name people."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["SHARED_VARIABLE", "file_mode", "folder_mode", "make_folders", "sharing"]

SHARED_VARIABLE = "GLASSHOUSE_SHARED"
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


def _shared() -> bool:
    asked = _SHARED.get()
    return os.environ.get(SHARED_VARIABLE, "").lower() not in _NO if asked is None else asked


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
