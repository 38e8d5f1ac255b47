"""The contract of every place where work runs, and the simplest of them: this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

__all__ = ["TRIES", "Compute", "ThisProcess", "with_threads"]

Task = TypeVar("Task")
Result = TypeVar("Result")
TRIES = 5


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


def with_threads(threads: int, function: Callable[..., Any], shared: tuple[Any, ...], task: Any, at: int) -> Any:
    """What a worker does: it uses no more threads than its share, so that workers do not compete for cores."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        return at, function(*shared, task)
