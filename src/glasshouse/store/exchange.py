"""Two folders change names in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["exchange"]

_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_EXCHANGE = 2  # RENAME_EXCHANGE
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)  # the kernel, the file system, or a sandbox


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders of one disk, so that at every moment both names exist.

    Returns:
        False where the system cannot do it (Linux 3.15 and glibc 2.28 can, most file systems too); nothing has changed
        then.
    """
    call = _renameat2()
    if call is None:
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    found = ctypes.get_errno()
    if found in _CANNOT:
        return False
    raise OSError(found, os.strerror(found), str(other))


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """The C library's function; None where it has none."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):  # TypeError: Windows has no library without a name
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call
