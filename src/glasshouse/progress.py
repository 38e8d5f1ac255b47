"""Progress of long steps, on standard error: items done, rate and time left; and which steps have begun."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

__all__ = ["note_work", "open_bar", "showing", "track", "work_so_far"]

Item = TypeVar("Item")

# Whether inner steps (a sampler's chains) show a bar; never while the bar of an outer step is open.
_INNER: ContextVar[bool | None] = ContextVar("_INNER", default=False)


class _Rate(ProgressColumn):
    """Items per minute since the start."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        minutes = (task.elapsed or 0.0) / 60
        rate = task.completed / minutes if minutes > 0 else 0.0
        return Text(f"{rate:.1f} {self.unit}/min")


@contextmanager
def showing(progress: bool | None) -> Iterator[None]:
    """Let steps inside the block show bars: True, False, or None to show them only on a terminal.

    Example:
        >>> with showing(False):
        ...     pass
    """
    before = _INNER.get()
    _INNER.set(progress)
    try:
        yield
    finally:
        _INNER.set(before)


@contextmanager
def open_bar(*, total: int, label: str, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar for an inner step, if `showing` allows one; gives a function that counts items as done.

    Args:
        total: how many items there will be.
        label: name of the step.
        unit: plural name of an item.

    Example:
        >>> with open_bar(total=3, label="Letters", unit="letters") as done:
        ...     done(3)
    """
    show = _INNER.get()
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda _: None
        return
    with _shown(total=total, label=label, unit=unit) as done:
        yield done


def track(items: Iterable[Item], *, total: int, label: str, unit: str, show: bool | None = None) -> Iterator[Item]:
    """Pass items through while a bar shows the progress.

    Args:
        items: what to pass through; an item counts as done when the next one is requested.
        total: how many there will be.
        label: name of the step.
        unit: plural name of an item.
        show: True or False; None shows it only if standard error is a terminal.

    Example:
        >>> list(track("abc", total=3, label="Letters", unit="letters", show=False))
        ['a', 'b', 'c']
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield from items
        return
    with _shown(total=total, label=label, unit=unit) as done:
        for item in items:
            yield item
            done(1)


@contextmanager
def _shown(*, total: int, label: str, unit: str) -> Iterator[Callable[[int], None]]:
    """An open bar, and a line when it closes; no other bar opens inside it."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        _Rate(unit),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    started = time.monotonic()
    with showing(False), Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(label, total=total)
        yield lambda count: bars.advance(task, count)
    console.print(f"[dim]{label}: {total} {unit} in {time.monotonic() - started:.1f} s[/dim]")


_BEGUN: dict[str, None] = {}  # in the order in which the steps began


def note_work(step: str, *, instead_of: str = "") -> None:
    """Remember that a long step of this process has begun, to report it if a fault is found later.

    Args:
        step: a sentence for the user, such as "An attack had been run."
        instead_of: an earlier sentence that is no longer true.
    """
    _BEGUN.pop(instead_of, None)
    _BEGUN[step] = None


def work_so_far() -> tuple[str, ...]:
    """The long steps that this process has begun; empty if nothing was run.

    Example:
        >>> note_work("An example was run.")
        >>> work_so_far()[-1]
        'An example was run.'
        >>> _ = _BEGUN.popitem()
    """
    return tuple(_BEGUN)
