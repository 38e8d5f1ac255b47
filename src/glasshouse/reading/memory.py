"""The one limit on memory: what a file holds, and what an audit file asks for, is judged before it is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from glasshouse.errors import InputError, shortened

__all__ = ["DEFAULT_LIMIT", "as_bytes", "check_memory", "current_limit", "memory_limit", "memory_of"]

DEFAULT_LIMIT = 2**30
_LIMIT: ContextVar[int] = ContextVar("memory limit", default=DEFAULT_LIMIT)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


@contextmanager
def memory_limit(most: int | str) -> Iterator[None]:
    """Within the block, one file may hold up to this much, such as ``"8GiB"``; 1 GiB by default.

    The command line has ``--memory`` for it. What is counted is the content, as arrays or cells, and not the peak:
    reading took 1.5 to 2.4 times that much (evidence, records, graphs), and an audit of evidence 4.3 times.
    Attacks that toggle nodes of a graph on the CPU plan their work to take so much at once.

    Example:
        >>> with memory_limit("8GiB"):
        ...     memory_of(2**33)
        '8.0 GiB'
    """
    token = _LIMIT.set(as_bytes(most))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def current_limit() -> int:
    """Bytes of the limit that holds here.

    Example:
        >>> with memory_limit("2KiB"):
        ...     current_limit()
        2048
    """
    return _LIMIT.get()


def check_memory(needed: int, *, place: str, what: str) -> None:
    """Refuse what takes more memory than the limit, before it is made.

    Args:
        needed: bytes.
        place: the file, and the field if there is one.
        what: a subject with its verb: ``"its arrays take"``.

    Example:
        >>> check_memory(2**33, place="e.npz", what="its arrays take")
        Traceback (most recent call last):
        glasshouse.errors.InputError: e.npz: its arrays take 8.0 GiB, and the limit is 1.0 GiB. If that is right, ...
    """
    if needed <= (most := _LIMIT.get()):
        return
    raise InputError(
        f"{place}: {what} {memory_of(needed)}, and the limit is {memory_of(most)}. If that is right, raise the limit: "
        f"--memory {_enough(needed)}, or glasshouse.reading.memory_limit. The limit counts what a file holds; reading "
        f"it takes up to three times as much, and an audit of it about five times."
    )


def memory_of(size: int) -> str:
    """A number of bytes for readers.

    Example:
        >>> memory_of(3 * 2**29), memory_of(2048)
        ('1.5 GiB', '2.0 KiB')
    """
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:  # whole numbers are divided, since a hostile one may be too large for a float
            tenths = size * 10 // unit
            return f"{tenths // 10}.{tenths % 10} {name}" if tenths < 10**7 else f"more than a million {name}"
    return f"{size} bytes"


def as_bytes(given: int | str, *, place: str = "memory") -> int:
    """A size in bytes, from a number or from text such as ``"8GiB"``, ``"500M"`` or ``"2.5 gb"``.

    Example:
        >>> as_bytes("8GiB") == 8 * 2**30
        True
        >>> as_bytes("a lot", place="--memory")
        Traceback (most recent call last):
        glasshouse.errors.InputError: --memory: 'a lot' is not a size; write it like 8GiB or 500MiB.
    """
    found = _SIZE.fullmatch(str(given).strip()) if isinstance(given, int | str) else None
    size = 0 if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
    if size < 1:
        raise InputError(f"{place}: {shortened(given)} is not a size; write it like 8GiB or 500MiB.")
    return size


def _enough(needed: int) -> str:
    """The next power of two, as the option takes it."""
    size = 1 << max(0, needed - 1).bit_length()
    return next(
        (f"{size >> bits}{name}" for bits, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")) if size >> bits), str(size)
    )
