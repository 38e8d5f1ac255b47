"""Threads for the arithmetic of large arrays, without copies, and how many the numerical libraries use."""

from __future__ import annotations

import contextlib
import functools
import mmap
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Found = TypeVar("Found")
_MANY = 1 << 16  # records; with fewer, threads take longer to start than the work
_VALUES = 1 << 15  # numbers of one block: a quarter of a megabyte, so that a block and what is made of it stay in cache
_FEWEST = 256  # records of a block; with fewer, calls take longer than the work
_MAPPED: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()  # files whose content is not kept in memory
_WORKING = threading.local()  # has an attribute in threads that work already


def side_by_side(function: Callable[[Any], Found], items: Iterable[Any], *, records: int) -> list[Found]:
    """``function`` of each item, in the order of the items; on all cores if an item is about many records."""
    if records < _MANY:
        return [function(item) for item in items]

    def handle(item: Any) -> Found:
        found = function(item)
        forget_mapped()
        return found

    return in_threads(handle, items)


def leave_in_file(values: NDArray[Any]) -> None:
    """Let no more of a mapped array be in memory than what is looked at; it can only be read from now on."""
    base: Any = values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        values.flags.writeable = False
        _MAPPED.add(base)


def forget_mapped() -> None:
    """Take what was read of such arrays out of memory: the system has it at hand, or reads it again."""
    for one in list(_MAPPED):
        one.madvise(mmap.MADV_DONTNEED)


def in_threads(function: Callable[[Any], Found], items: Iterable[Any], *, jobs: int = -1) -> list[Found]:
    """``function`` of each item, in the order of the items, by so many threads; -1: by as many as there are cores.

    The calling thread is one of them, in case no other can be started for lack of memory; work within it stays there.
    """
    threads = joblib.cpu_count() if jobs == -1 else jobs
    if threads == 1 or getattr(_WORKING, "now", False):
        return [function(item) for item in items]
    left, lock, found, faults = enumerate(items), threading.Lock(), dict[int, Found](), list[BaseException]()

    def work() -> None:
        _WORKING.now = True
        try:
            while not faults:
                with lock:
                    at, item = next(left, (-1, None))
                if at < 0:
                    return
                found[at] = function(item)
        except BaseException as error:
            faults.append(error)
        finally:
            _WORKING.now = False

    started = []
    with contextlib.suppress(RuntimeError):  # no memory for the stack of one more
        for _ in range(threads - 1):
            helper = threading.Thread(target=work, daemon=True)
            helper.start()
            started.append(helper)
    work()
    if faults and not isinstance(faults[0], Exception):
        raise faults[0]  # the user stops it: nobody waits for what the others are doing
    for helper in started:
        helper.join()
    if faults:
        raise faults[0]
    return [found[at] for at in range(len(found))]


def over_records(function: Callable[[slice], object], records: int, *, models: int) -> None:
    """Call ``function`` with blocks of records [K, N], which together are all; on all cores if there are many."""

    def handle(part: slice) -> None:
        for some in cached_blocks(part.stop, models=models, start=part.start):
            function(some)

    parts = [slice(start, min(start + _MANY, records)) for start in range(0, records, _MANY)]
    side_by_side(handle, parts, records=records)


def cached_blocks(records: int, *, models: int, start: int = 0) -> Iterator[slice]:
    """Blocks of records whose values for so many models fit into the cache."""
    size = max(_FEWEST, _VALUES // max(models, 1))
    for first in range(start, records, size):
        yield slice(first, min(first + size, records))


@functools.cache
def thread_counts() -> ThreadpoolController:
    """The libraries whose threads are counted, found once: looking for them takes longer than judging a few rows."""
    import scipy.linalg  # noqa: F401 (it brings a BLAS of its own, which is found if it is loaded)

    return ThreadpoolController()


class _OneCore:
    """Products of matrices on one core while anyone is inside: several cores may add up in another order.

    The libraries hold one number of threads for the whole process. It is changed by the first to enter and put back by
    the last to leave, since each of several threads would put back the number that it had found.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock, _anyone_decides():
            if not self._inside:
                self._limit = thread_counts().select(user_api="blas").limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock, _anyone_decides():
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


@contextlib.contextmanager
def _anyone_decides() -> Iterator[None]:
    """Let any thread set the number: threadpoolctl lets the one that came first decide alone, even when it is done."""
    known = [one for one in thread_counts().lib_controllers if hasattr(one, "clear_controlling_thread")]
    for library in known:
        library.clear_controlling_thread(force=True)
    yield
    for library in known:
        library.clear_controlling_thread(force=True)


ONE_CORE = _OneCore()
