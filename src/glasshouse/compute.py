"""Where work runs: this process, local worker processes, or an existing Ray cluster. One interface, equal results."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from glasshouse.errors import InputError, needs_extra

__all__ = ["Compute", "LocalProcesses", "RayCluster", "ThisProcess", "chosen_compute"]

Task = TypeVar("Task")
Result = TypeVar("Result")
_TRIES = 5


class Compute(Protocol):
    """Runs ``function(*shared, task)`` for every task and gives (position, result) as tasks end, in any order."""

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results with the positions of their tasks."""
        ...


@dataclass(frozen=True)
class ThisProcess:
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


@dataclass(frozen=True, kw_only=True)
class LocalProcesses:
    """Worker processes on this machine (joblib's loky); each uses only its share of the cores.

    A worker that dies is replaced, and its tasks are run again. Code travels by value (cloudpickle, within joblib), so
    that functions of a notebook, lambdas and closures work too.

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
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = list(range(len(tasks)))
        for attempt in range(_TRIES):
            parallel = Parallel(n_jobs=self.count, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
            calls = (delayed(_with_threads)(self.threads, function, shared, tasks[at], at) for at in list(left))
            try:
                for position, result in parallel(calls):
                    left.remove(position)
                    yield position, result
            except TerminatedWorkerError:
                if attempt == _TRIES - 1:
                    raise InputError(
                        f"compute: workers died {_TRIES} times with {len(left)} tasks left, perhaps for lack of "
                        f"memory. Use fewer workers."
                    ) from None
                continue
            except Exception as error:
                if type(error).__name__ != "PicklingError":
                    raise
                # the cause holds a worker's whole traceback, which ends in the reason
                lines = [line.strip(' "') for line in str(error.__cause__ or error).splitlines()]
                reason = next((line for line in reversed(lines) if line), type(error).__name__)
                raise InputError(
                    f"compute: the trainer or the data cannot be sent to worker processes ({reason}). Make such "
                    f"objects inside the training function, or train in this process."
                ) from error
            return


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """An existing Ray cluster; data goes to its object store once, and tasks of a lost node run elsewhere.

    Args:
        address: ``"auto"`` for the cluster of this machine, or ``"ray://host:port"``.
        cpus: cores per task.
    """

    address: str = "auto"
    cpus: float = 1

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results in the order in which tasks end."""
        with needs_extra("A cluster", package="ray", extra="cluster"):
            import ray
        if not ray.is_initialized():
            try:
                ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError) as error:
                raise InputError(f"cluster: no Ray cluster at {self.address!r}: {error}") from error
        held = [ray.put(one) for one in shared]
        work = ray.remote(num_cpus=self.cpus, max_retries=_TRIES)(_on_ray)
        waiting = {work.remote(function, self.cpus, task, *held): at for at, task in enumerate(tasks)}
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                position = waiting.pop(reference)
                yield position, ray.get(reference)


def chosen_compute(*, workers: int | None = None, cluster: str | None = None) -> Compute:
    """Where to run, from what a user asked for on the command line.

    Example:
        >>> chosen_compute(workers=2)
        LocalProcesses(workers=2)
    """
    if cluster is not None:
        if workers is not None:
            raise InputError("--workers, --cluster: give one of them; a cluster has its own workers.")
        return RayCluster(address=cluster)
    if workers is None or workers == 1:
        return ThisProcess()
    if workers < 1:
        raise InputError(f"--workers: {workers} is not a number of processes; use 1 or more.")
    return LocalProcesses(workers=workers)


def _with_threads(threads: int, function: Callable[..., Any], shared: tuple[Any, ...], task: Any, at: int) -> Any:
    """What a local worker does: it uses no more threads than its share, so that workers do not compete for cores."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        return at, function(*shared, task)


def _on_ray(function: Callable[..., Any], cpus: float, task: Any, *shared: Any) -> Any:
    return _with_threads(max(1, int(cpus)), function, shared, task, 0)[1]
