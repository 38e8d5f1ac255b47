"""Worker processes on this machine."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from glasshouse.compute.here import TRIES, with_threads
from glasshouse.errors import InputError

__all__ = ["LocalProcesses"]

_LOOK = 1.0  # seconds between two looks at the parent

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class LocalProcesses:
    """Worker processes on this machine (joblib's loky); each uses only its share of the cores.

    There are never more of them than tasks, and none is left when the last task has ended, or this
    process was killed. A worker that dies is replaced, and its tasks are run again. Code travels by value (cloudpickle,
    within joblib), so that functions of a notebook, lambdas and closures work too.

    Args:
        workers: how many; as many as there are cores by default.

    Example:
        >>> LocalProcesses(workers=2).threads >= 1
        True
    """

    workers: int | None = None

    @property
    def count(self) -> int:
        """How many workers there are."""
        return self.workers or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else self.workers or 1

    @property
    def threads(self) -> int:
        """How many threads each has."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // self.count)

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results in the order in which tasks end."""
        left = list(range(len(tasks)))
        with _workers_that_end():
            for attempt in range(TRIES if left else 0):
                try:
                    for position, result in self._parallel(left, function, shared, tasks):
                        left.remove(position)
                        yield position, result
                except _worker_died():
                    if attempt == TRIES - 1:
                        raise InputError(
                            f"compute: workers died {TRIES} times with {len(left)} tasks left, perhaps for lack of "
                            f"memory. Use fewer workers."
                        ) from None
                    continue
                except Exception as error:
                    if type(error).__name__ != "PicklingError":
                        raise
                    raise InputError(
                        f"compute: the trainer or the data cannot be sent to worker processes ({_reason(error)}). Make "
                        f"such objects inside the training function, or train in this process."
                    ) from error
                return

    def _parallel(
        self, left: Sequence[int], function: Callable[..., Any], shared: tuple[Any, ...], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Positions and results of the tasks at these positions."""
        from joblib import Parallel, delayed

        here, workers = os.getpid(), min(self.count, len(left))
        calls = [(here, self.threads, function, shared, tasks[at], at) for at in left]
        if workers == 1:  # joblib would work in this process
            yield from _one_after_another(calls)
            return
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
        yield from parallel(delayed(_in_worker)(*call) for call in calls)


@contextmanager
def _workers_that_end() -> Iterator[None]:
    """End the workers that were started in the block; joblib would keep them, and what they hold, for five minutes."""
    from joblib.externals.loky import reusable_executor

    theirs = reusable_executor._executor  # of the user's own work, which may go on
    try:
        yield
    finally:
        ours = reusable_executor._executor
        if ours is not None and ours is not theirs:
            ours.shutdown(wait=True, kill_workers=True)


def _one_after_another(calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Calls in one worker, which ends with the last."""
    from joblib.externals.loky import ProcessPoolExecutor

    worker = ProcessPoolExecutor(max_workers=1)
    try:
        for call in calls:
            yield worker.submit(_in_worker, *call).result()
    finally:
        worker.shutdown(wait=True, kill_workers=True)


def _in_worker(parent: int, *call: Any) -> Any:
    """What a worker does; it ends when the process that waits for its results is gone, even if that was killed."""
    _end_with(parent)
    return with_threads(*call)


@functools.cache
def _end_with(parent: int) -> None:
    """Watch the parent from now on, once in a process."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)  # nobody is left to whom an exception could be told

    threading.Thread(target=watch, daemon=True).start()


def _worker_died() -> type[Exception]:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    found: type[Exception] = TerminatedWorkerError
    return found


def _reason(error: Exception) -> str:
    """Why something cannot be sent: the cause holds a worker's whole traceback, which ends in the reason."""
    lines = [line.strip(' "') for line in str(error.__cause__ or error).splitlines()]
    return next((line for line in reversed(lines) if line), type(error).__name__)
