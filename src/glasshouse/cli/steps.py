"""Steps that several commands share: check all input first, end an interrupted command, save and print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from glasshouse.cli.printing import say
from glasshouse.errors import InputError, raise_faults
from glasshouse.progress import work_so_far
from glasshouse.report import print_summary
from glasshouse.report.plain import metrics_json
from glasshouse.result import AuditResult
from glasshouse.visible import visible

__all__ = ["checked", "finish", "interruptible"]

Found = TypeVar("Found")


@contextmanager
def interruptible(out: Path | None) -> Iterator[None]:
    """End with one line, and the exit code of an interrupted command, when the user stops the long work."""
    try:
        yield
    except KeyboardInterrupt:
        written = "" if out is None else f" Nothing was written to {out}."
        say(" ".join([f"Stopped.{written}", *work_so_far()]), err=True)
        raise typer.Exit(130) from None


def finish(result: AuditResult, *, out: Path | None, overwrite: bool, as_json: bool, seconds: float) -> None:
    """Save, print, and show where the report is; figures that cannot be saved are still printed."""
    fault: InputError | None = None
    if out is not None:
        try:
            result.save(out, overwrite=overwrite)
        except InputError as error:
            fault = error
        except KeyboardInterrupt:
            say(f"Stopped while saving: {out} holds what it held before, or the complete new run.", err=True)
            raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(metrics_json(result.summary())))
    else:
        console = Console(width=None if sys.stdout.isatty() else 140)
        print_summary(result.summary(), console)
        console.print()
        if out is not None and fault is None:
            place = visible((out / "report.html").resolve())
            console.print(f"Report: {place}", highlight=False, soft_wrap=True, markup=False)
        console.print(f"[dim]{seconds:.1f} s in all[/dim]", highlight=False)
    if fault is not None:
        raise fault


def checked(read: Callable[[], Found], *checks: Callable[[], object]) -> Found:
    """What ``read`` gives, if every check passes too; else the faults of all of them, those of ``read`` first."""
    faults: list[str] = []
    found: list[Found] = []
    for step in (lambda: found.append(read()), *checks):
        try:
            step()
        except InputError as error:
            faults.extend(error.faults)
    raise_faults(faults)
    return found[0]
