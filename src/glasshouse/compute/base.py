"""The contract of every place where work runs, and the simplest of them: this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from glasshouse.compute.serialise import Parcels, open_parcel

Task = TypeVar("Task")
Result = TypeVar("Result")
TRIES = 5
_SHARE = "LOKY_MAX_CPU_COUNT"  # the cores that a worker may use; joblib knows this name, so its threads keep to it too
_SHARERS = "GLASSHOUSE_GPU_SHARERS"  # how many processes use this one's GPU


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

    @contextmanager
    def opened(self) -> Iterator[Compute]:
        """The same, with workers that stay until the end of the block."""
        with self._workers(None) as workers:
            yield workers

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
