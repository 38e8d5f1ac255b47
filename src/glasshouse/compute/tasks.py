"""Spread the tasks of a long step over the workers that an audit was given; what is short stays in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from glasshouse.compute.base import Compute, Result, Task, ThisProcess
from glasshouse.compute.serialise import NotSentError

_START = 6.0  # seconds of work for which it is worth to start workers, or to connect to them
_GO_ON = 1.0  # the same once they have started
_BUNDLE = 0.5  # seconds; shorter tasks travel together
_LOG = logging.getLogger("glasshouse")


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
