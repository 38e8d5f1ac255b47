"""The one limit on memory: what a file holds is judged before it is read, and a whole command has a hard limit."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from glasshouse.core.errors import InputError, shortened

DEFAULT_LIMIT = 2**30
_LIMIT: ContextVar[int] = ContextVar("memory limit", default=DEFAULT_LIMIT)
_BOUNDED: ContextVar[bool] = ContextVar("whether the process has a hard limit", default=False)
_SIGNS = ("can't start new thread", "can't allocate memory", "Cannot allocate memory")
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_ARENA_MAX = -8  # a parameter of glibc's malloc
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


@contextmanager
def memory_limit(most: int | str) -> Iterator[None]:
    """Within the block, one file may hold up to this much, such as ``"8GiB"``; 1 GiB by default.

    The command line has ``--memory`` for it, and bounds its whole process too (`process_limit`). What is counted here
    is the content of one file, as arrays or cells. Attacks that toggle nodes of a graph on the CPU plan their work to
    take so much at once.

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


def one_heap() -> None:
    """Let all threads of this process share one heap, where glibc allows it: what one of them frees, others use.

    It must come before libraries start threads.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


@contextmanager
def process_limit() -> Iterator[None]:
    """Within the block, the process takes at most twice the limit in all, whatever it does: more is a `MemoryError`.

    Where it takes so much already, it may take the limit once more. Processes that it starts inherit the bound, each
    for itself. Only where the system can do it (Linux).
    """
    if _taken() is None:
        yield
        return
    import resource

    _start_libraries()
    taken = _taken() or 0

    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = max(2 * current_limit(), taken + current_limit())
    allowed = [one for one in (most, before, hard) if one != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), hard))
    token = _BOUNDED.set(True)
    try:
        yield
    finally:
        _BOUNDED.reset(token)
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def limits_for_workers() -> tuple[int, bool]:
    """The limit that holds here, and whether it bounds the whole process: what `keep_limits` of a worker needs."""
    return _LIMIT.get(), _BOUNDED.get()


def keep_limits(most: int, bounded: bool) -> None:
    """What a worker does first: it has the limits of the process that started it; the bound is set already."""
    _LIMIT.set(most)
    _BOUNDED.set(bounded)
    if bounded:
        _start_libraries()


def _start_libraries() -> None:
    """Let numerical libraries take now what they cannot do without: their threads, and the buffers of OpenBLAS.

    They take it when they first work: where the limit then forbids it, OpenMP ends the process, and OpenBLAS ends it or
    waits without end. Pages that nobody writes to cost nothing.
    """
    import ctypes

    import joblib
    import scipy.linalg  # noqa: F401 (these load the libraries)
    import sklearn.utils.parallel  # noqa: F401
    from threadpoolctl import ThreadpoolController

    nothing = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p)  # what the threads do when they have started
    for found in ThreadpoolController().lib_controllers:
        library, threads = ctypes.CDLL(found.filepath), int(found.num_threads)
        found.set_num_threads(threads)  # OpenBLAS starts its threads, if this process was forked and has none
        if hasattr(library, "GOMP_parallel"):
            library.GOMP_parallel(nothing, None, ctypes.c_uint(threads), ctypes.c_uint(0))
        if hasattr(library, "blas_memory_alloc"):
            library.blas_memory_alloc.restype = ctypes.c_void_p
            taken = [library.blas_memory_alloc(0) for _ in range(threads + joblib.cpu_count())]
            for one in taken:
                library.blas_memory_free(ctypes.c_void_p(one))


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an error came from a lack of memory, under whatever name: numpy's, torch's, or of a thread's stack."""
    while error is not None:
        if isinstance(error, MemoryError) or any(sign in str(error) for sign in _SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False


def _taken() -> int | None:
    """Bytes that the system counts against a limit on this process's data; None where it does not say."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123 (a file of the system's)
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmData"))
    except (OSError, StopIteration, ValueError):
        return None


def current_limit() -> int:
    """Bytes of the limit that holds here."""
    return _LIMIT.get()


def check_memory(needed: int, *, place: str, what: str) -> None:
    """Refuse what takes more bytes than the limit, before it is made; ``what`` is a subject with its verb."""
    if needed <= (most := _LIMIT.get()):
        return
    raise InputError(
        f"{place}: {what} {memory_of(needed)}, and the limit is {memory_of(most)}. If that is right, raise the limit: "
        f"--memory {_enough(4 * needed)}, or glasshouse.io.limits.memory_limit."
    )


def memory_of(size: int) -> str:
    """A number of bytes for readers."""
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:  # whole numbers are divided, since a hostile one may be too large for a float
            tenths = size * 10 // unit
            return f"{tenths // 10}.{tenths % 10} {name}" if tenths < 10**7 else f"more than a million {name}"
    return f"{size} bytes"


def as_bytes(given: int | str, *, place: str = "memory") -> int:
    """A size in bytes, from a number or from text such as ``"8GiB"``, ``"500M"`` or ``"2.5 gb"``."""
    found = _SIZE.fullmatch(str(given).strip()) if isinstance(given, int | str) else None
    size = 0 if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
    if size < 1:
        raise InputError(f"{place}: {shortened(given)} is not a size; write it like 8GiB or 500MiB.")
    return size


def _enough(needed: int) -> str:
    """The next power of two, as the option takes it."""
    size = 1 << max(0, needed - 1).bit_length()
    units = ((30, "GiB"), (20, "MiB"), (10, "KiB"))
    return next((f"{size >> bits}{name}" for bits, name in units if size >> bits), str(size))
