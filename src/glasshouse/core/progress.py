"""Progress of long steps, on standard error: items done, rate and time left; and which steps have begun.

On a terminal each step has a bar. Elsewhere there is a plain line after ten seconds of work, then every half minute.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

Item = TypeVar("Item")

# Whether inner steps (a sampler's chains) show their progress; never while an outer step that counts is shown.
_INNER: ContextVar[bool | None] = ContextVar("_INNER", default=False)

_FIRST, _NEXT = 10.0, 30.0  # seconds of work before the first plain line, and between two
_BEAT = 5.0  # seconds between two looks at the clock, while a step counts nothing
_BEGUN: dict[str, None] = {}  # in the order in which the steps began


class _Rate(ProgressColumn):
    """Items per minute since the start."""

    def render(self, task: Task) -> Text:
        rate = 60 * task.completed / task.elapsed if task.elapsed else 0.0
        return Text(f"{rate:.1f} {task.fields['unit']}/min")


@contextmanager
def showing(progress: bool | None, *, label: str = "") -> Iterator[None]:
    """Let steps inside the block show their progress: True, False, or None for bars on a terminal and lines elsewhere.

    ``label`` is what is done in the block, for a plain line if no step in it counts anything.
    """
    before = _INNER.get()
    _INNER.set(progress)
    try:
        with _lines(label) if label and _in_lines(progress) else nullcontext():
            yield
    finally:
        _INNER.set(before)


def open_bar(*, total: int, label: str, unit: str) -> AbstractContextManager[Callable[[int], None]]:
    """The progress of an inner step, if `showing` allows it, as by `track`; gives a function that counts items."""
    return _progress(_INNER.get(), total=total, label=label, unit=unit)


def track(items: Iterable[Item], *, total: int, label: str, unit: str, show: bool | None = None) -> Iterator[Item]:
    """Pass items through while a step is shown, as `showing` says; one counts as done when the next is requested."""
    with _progress(show, total=total, label=label, unit=unit) as done:
        for item in items:
            yield item
            done(1)


def _in_lines(show: bool | None) -> bool:
    return show is None and not sys.stderr.isatty()


@contextmanager
def _progress(show: bool | None, *, total: int, label: str, unit: str) -> Iterator[Callable[[int], None]]:
    """A step that counts its items, shown as the place allows."""
    if show is False:
        yield lambda _: None
        return
    step = _lines if _in_lines(show) else _shown
    with showing(False), step(label, total=total, unit=unit) as done:  # no other opens inside it
        yield done


class _Silence:
    """How long this process has worked without a word: steps add their time to it, and a line ends it."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.monotonic
        self.seconds, self.allowed = 0.0, _FIRST
        self.steps: list[_Step] = []  # that are open; the last one speaks
        self.lock = threading.RLock()


_SILENCE = _Silence()


class _Step:
    """A step that is not on a terminal."""

    def __init__(self, label: str, *, total: int = 0, unit: str = "") -> None:
        self.label, self.total, self.unit = label, total, unit
        self.done, self.spoke = 0, False
        self.began = self.seen = _SILENCE.clock()

    def count(self, items: int) -> None:
        self.done += items
        self.look()

    def look(self) -> None:
        """Say a line, if there was none for long enough."""
        with _SILENCE.lock:
            now = _SILENCE.clock()
            if _SILENCE.steps[-1:] == [self]:
                _SILENCE.seconds += now - self.seen
            self.seen = now
            if _SILENCE.seconds >= _SILENCE.allowed and _SILENCE.steps[-1:] == [self]:
                self.say(self.state(now - self.began))

    def say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
        self.spoke = True
        _SILENCE.seconds, _SILENCE.allowed = 0.0, _NEXT

    def state(self, seconds: float) -> str:
        if not self.total:
            return f"{self.label}: {_spell(seconds)} so far"
        counted = f"{self.label}: {self.done} of {self.total} {self.unit} after {_spell(seconds)}"
        if not 0 < self.done < self.total:
            return counted
        return f"{counted}, about {_spell(seconds / self.done * (self.total - self.done))} left"


@contextmanager
def _lines(label: str, *, total: int = 0, unit: str = "") -> Iterator[Callable[[int], None]]:
    """A step that says a plain line now and then, and, if it was long and has said one, when it ends."""
    step, stop = _Step(label, total=total, unit=unit), threading.Event()
    with _SILENCE.lock:
        for outer in _SILENCE.steps[-1:]:
            outer.look()
        _SILENCE.steps.append(step)

    def watch() -> None:  # an item may take long
        while not stop.wait(_BEAT):
            step.look()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield step.count
        seconds = _SILENCE.clock() - step.began
        if step.spoke and seconds >= _FIRST:
            counted = f"{total} {unit}" if total else "done"
            step.say(f"{label}: {counted} in {_spell(seconds)}")
    finally:
        stop.set()
        with _SILENCE.lock:
            step.look()
            _SILENCE.steps.remove(step)
            for outer in _SILENCE.steps[-1:]:
                outer.seen = _SILENCE.clock()


def _spell(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def _shown(label: str, *, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """An open bar, and a line when it closes."""
    console = Console(stderr=True)
    done = (TextColumn("{task.description}"), BarColumn(bar_width=32), MofNCompleteColumn())
    left = (_Rate(), TimeRemainingColumn(), TextColumn("left"))
    started = time.monotonic()
    with Progress(*done, *left, console=console, transient=True) as bars:
        task = bars.add_task(label, total=total, unit=unit)
        yield lambda count: bars.advance(task, count)
    console.print(f"[dim]{label}: {total} {unit} in {time.monotonic() - started:.1f} s[/dim]")


def note_work(step: str, *, instead_of: str = "") -> None:
    """Remember that a long step has begun, a sentence for a later fault; ``instead_of`` is an earlier one."""
    _BEGUN.pop(instead_of, None)
    _BEGUN[step] = None


def work_so_far() -> tuple[str, ...]:
    """The long steps that this process has begun; empty if nothing was run."""
    return tuple(_BEGUN)
