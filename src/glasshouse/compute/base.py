"""Where work runs: what every place can do, this process, and how the tasks of a long step go to workers."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from glasshouse.compute.serialise import NotSentError, Parcels, open_parcel

Task = TypeVar("Task")
Result = TypeVar("Result")
TRIES = 5
_SHARE = "LOKY_MAX_CPU_COUNT"  # the cores that a worker may use; joblib knows this name, so its threads keep to it too
_SHARERS = "GLASSHOUSE_GPU_SHARERS"  # how many processes use this one's GPU
_START = 6.0  # seconds of work for which it is worth to start workers, or to connect to them
_GO_ON = 1.0  # the same once they have started
_BUNDLE = 0.5  # seconds; shorter tasks travel together
_LOG = logging.getLogger("glasshouse")


class Compute(Protocol):
    """Runs ``function(*shared, task)`` for every task and gives (position, result) as tasks end, in any order."""

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results with the positions of their tasks."""

    def opened(self) -> AbstractContextManager[Compute]:
        """The same place, whose workers stay for all runs of the block, with the models and graphs that they got."""
        return nullcontext(self)


@dataclass(frozen=True)
class ThisProcess(Compute):
    """One task after another, in this process.

    Example:
        >>> list(ThisProcess().run(lambda base, task: base + task, (10,), [1, 2]))
        [(0, 11), (1, 12)]
    """

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results in order."""
        for position, task in enumerate(tasks):
            yield position, function(*shared, task)


class Elsewhere(Compute):
    """A place with workers: they are there for one run, or for all runs of a block."""

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results in the order in which tasks end."""
        if tasks:
            with self._workers(len(tasks)) as workers:
                yield from workers.run(function, shared, tasks)

    def opened(self) -> AbstractContextManager[Compute]:
        """The same, with workers that stay until the end of the block."""
        return self._workers(None)

    def _workers(self, tasks: int | None) -> AbstractContextManager[Workers]:
        """Workers for one run of so many tasks, or without a number for more runs."""
        raise NotImplementedError


class Workers(Compute):
    """Workers that were started, and the parcels that they ask for."""

    parcels: Parcels

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results in the order in which tasks end."""
        key = self.parcels.pack((function, shared))
        try:
            yield from self._results(key, tasks)
        finally:
            self.parcels.forget(key)

    def _results(self, key: str, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The same of the function in a parcel; a worker does `do_task`."""
        raise NotImplementedError


def available_cores() -> int:
    """The cores that this process may use; a worker has its share of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = os.environ.get(_SHARE, "")
    return min(cores, max(1, int(share))) if share.isdecimal() else cores


def gpu_share() -> float:
    """The share of its GPU's memory that this process may use; less than 1 if other workers use the same GPU."""
    sharers = os.environ.get(_SHARERS, "")
    return 1.0 / max(1, int(sharers)) if sharers.isdecimal() else 1.0


def share_gpu(processes: int) -> None:
    """From now on this process uses its GPU with others, as one of so many."""
    os.environ[_SHARERS] = str(round(max(1, processes) / gpu_share()))


def do_task(key: str, threads: int, task: Any) -> Any:
    """What a worker does: it uses no more threads than its share, so that workers do not compete for cores."""
    from threadpoolctl import threadpool_limits

    function, shared = open_parcel(key)
    os.environ[_SHARE] = str(threads)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
    else:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # for torch, if the work itself imports it
    with threadpool_limits(threads):
        return function(*shared, task)


class _Place:
    """Workers that start with the first work that is worth it."""

    def __init__(self, compute: Compute, stack: ExitStack) -> None:
        self._compute, self._stack = compute, stack
        self._workers: Compute | None = None

    @property
    def least(self) -> float:
        """Seconds of work that are worth the way to the workers."""
        return _START if self._workers is None else _GO_ON

    @property
    def workers(self) -> Compute:
        if self._workers is None:
            opened = getattr(self._compute, "opened", lambda: nullcontext(self._compute))  # a user's own may have none
            self._workers = self._stack.enter_context(opened())
        return self._workers


_PLACE: ContextVar[_Place | None] = ContextVar("_PLACE", default=None)


@contextmanager
def spreading_over(compute: Compute | None) -> Iterator[None]:
    """Let long steps inside the block use these workers, which end with it; None or `ThisProcess` changes nothing."""
    if compute is None or isinstance(compute, ThisProcess):
        yield
        return
    with ExitStack() as stack:
        before = _PLACE.set(_Place(compute, stack))
        try:
            yield
        finally:
            _PLACE.reset(before)


def is_worth_spreading(seconds: float = float("inf")) -> bool:
    """Whether there are workers, and work of so many seconds should go to them."""
    place = _PLACE.get()
    return place is not None and seconds >= place.least


def spread(
    function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task], *, seconds: float | None = None
) -> Iterator[tuple[int, Result]]:
    """``function(*shared, task)`` for every task, with its position, in the order in which tasks end.

    A task gives the same bytes wherever it runs; what cannot be sent to workers is done here. ``seconds`` is how long
    all should take here; by default the first is done here and measured.
    """
    place, first = _PLACE.get(), 0
    if place is not None and seconds is None and len(tasks) > 1:
        began = time.perf_counter()
        yield 0, function(*shared, tasks[0])
        first, seconds = 1, (time.perf_counter() - began) * (len(tasks) - 1)
    left = list(enumerate(tasks))[first:]
    if place is not None and seconds is not None and len(left) > 1 and seconds >= place.least:
        workers = place.workers
        wanted = getattr(workers, "bundle", None) or _BUNDLE
        size = max(1, int(wanted * len(left) / max(seconds, 1e-9)))
        bundles = [left[start : start + size] for start in range(0, len(left), size)]
        try:
            for _, found in workers.run(_bundle, (function, shared), bundles):
                yield from found
        except NotSentError as error:  # before any task has run
            _LOG.warning("This step stays in this process: %s.", error.reason)
        else:
            return
    for position, task in left:
        yield position, function(*shared, task)


def spread_in_order(
    function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task], *, seconds: float | None = None
) -> Iterator[Result]:
    """The results of `spread` in the order of the tasks."""
    found: dict[int, Result] = {}
    wanted = 0
    for position, result in spread(function, shared, tasks, seconds=seconds):
        found[position] = result
        while wanted in found:
            yield found.pop(wanted)
            wanted += 1


def _bundle(function: Callable[..., Any], shared: tuple[Any, ...], tasks: Sequence[tuple[int, Any]]) -> Any:
    return [(position, function(*shared, task)) for position, task in tasks]
