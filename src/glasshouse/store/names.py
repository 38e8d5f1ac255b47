"""A place as a user names it: what the system cannot name is refused once, before anybody asks what is there."""

from __future__ import annotations

import contextlib
from pathlib import Path

from glasshouse.errors import InputError, shortened

__all__ = ["check_name", "resolved"]


def resolved(path: Path | str) -> Path:
    """The absolute path of a place, without links; links in a circle are refused.

    Example:
        >>> resolved("docs/..") == Path.cwd()
        True
    """
    check_name(path)
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        raise InputError(f"{shortened(str(path))}: is not a place: {str(error).split(' from ')[0]}.") from error


def check_name(path: Path | str) -> None:
    r"""Refuse a name that the system cannot use: too long, with a zero in it, or below links in a circle.

    Example:
        >>> check_name("docs")
        >>> check_name("a\0b")
        Traceback (most recent call last):
        glasshouse.errors.InputError: 'a\x00b': is not a place: embedded null byte.
        >>> check_name("x" * 5000)
        Traceback (most recent call last):
        glasshouse.errors.InputError: 'xxx...xxx' (5000 characters): is not a place: File name too long.
    """
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            Path(path).lstat()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{shortened(str(path))}: is not a place: {said}.") from error
