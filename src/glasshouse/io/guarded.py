"""What every reader does: look at the file before it is opened, and turn whatever a library raises into one line."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from glasshouse.core.errors import InputError, first_line
from glasshouse.io.limits import check_memory


@contextmanager
def guarded(place: Path | str, *, what: str, advice: str = "") -> Iterator[None]:
    """Around everything that a library does with a stranger's file: each fault, of any kind, becomes an `InputError`.

    It names the ``place``, ``what`` the file should be, such as ``"a .npz file"``, and a sentence of ``advice``.
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
        told = first_line(error, lines=3).rstrip(".: ")  # pydantic says what is wrong in the third
        raise InputError(f"{place}: is damaged, or is not {what} ({told}).{after}") from error


def file_size(path: Path, *, missing: str = "there is no such file.") -> int:
    """The size of a plain file in bytes; a folder, a device, a pipe and a name that is too long are refused."""
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
    """The content of a plain file that, once read, is at most ``times`` as large within the memory limit; 0: any."""
    check_memory(times * file_size(path, missing=missing), place=str(path), what="once read it may take")
    with guarded(path, what="a file"):
        return path.read_bytes()
