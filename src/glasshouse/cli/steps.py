"""Steps that several commands share: check all input first, end an interrupted command, save and print."""

from __future__ import annotations

import dataclasses
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
from glasshouse.report.policy import Policy
from glasshouse.report.redaction import key_beside, read_or_make_key
from glasshouse.result import AuditResult
from glasshouse.store import resolved
from glasshouse.visible import visible

__all__ = ["Terminated", "checked", "finish", "interruptible", "key_file"]

Found = TypeVar("Found")

_LONG = 1.0  # seconds of loading that are worth a word


class Terminated(KeyboardInterrupt):
    """Another program asked this one to end (SIGTERM), as batch systems and containers do."""


@contextmanager
def interruptible(out: Path | None = None) -> Iterator[None]:
    """End with one line, and the exit code of a command that was stopped, when a user or a program stops it."""
    try:
        yield
    except KeyboardInterrupt as error:
        written = "" if out is None else f" Nothing was written to {out}."
        say(" ".join([f"Stopped.{written}", *work_so_far()]), err=True)
        raise typer.Exit(stopped_code(error)) from None


def stopped_code(error: KeyboardInterrupt) -> int:
    """The exit code that shells expect of a program that a signal ended.

    Example:
        >>> stopped_code(KeyboardInterrupt()), stopped_code(Terminated())
        (130, 143)
    """
    return 143 if isinstance(error, Terminated) else 130


def key_file(*, redact: bool, key: Path | None, out: Path | None) -> Path | None:
    """Where the key of a redaction is or will be, checked before the long work; None if nothing is redacted."""
    if not redact:
        if key is not None:
            raise InputError("--key: is used with --redact alone; add --redact, or leave it out.")
        return None
    if key is None and out is None:
        raise InputError("--redact: there is no folder to keep the key beside; add --out or --key.")
    place = key if key is not None else key_beside(out or Path())
    if resolved(place).exists():
        read_or_make_key(place)
    return place


def finish(
    result: AuditResult,
    *,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
    seconds: float,
    loading: float = 0.0,
    policy: Policy | None = None,
    key: Path | None = None,
    author: str | None = None,
) -> None:
    """Save, print, and show where the report is; figures that cannot be saved are still printed.

    Args:
        result: of the audit.
        out: folder for the run; None to print only.
        overwrite: replace an earlier run there.
        as_json: print JSON for machines.
        seconds: of the whole command.
        loading: of these, what passed before anything was computed: libraries, mostly.
        policy: that rates the run.
        key: file of the key by which ids are hashed, which is made if it is not there; None to keep ids.
        author: who answers for the audit; None to keep what the audit file says.
    """
    fault: InputError | None = None
    if author is not None:
        result = dataclasses.replace(result, context=dataclasses.replace(result.context, author=author))
    if key is not None:
        result = result.redacted(read_or_make_key(key))
    if out is not None:
        try:
            result.save(out, overwrite=overwrite, policy=policy)
        except InputError as error:
            fault = error
        except KeyboardInterrupt as error:
            say(f"Stopped while saving: {out} holds what it held before, or the complete new run.", err=True)
            raise typer.Exit(stopped_code(error)) from None
    if as_json:
        typer.echo(json.dumps(metrics_json(result.summary())))
    else:
        console = Console(width=None if sys.stdout.isatty() else 140)
        print_summary(result.summary(), console, policy=policy)
        console.print()
        if out is not None and fault is None:
            place = visible((out / "report.html").resolve())
            console.print(f"Report: {place}", highlight=False, soft_wrap=True, markup=False)
        if key is not None:
            place = visible(key.resolve())
            console.print(f"Key to the hashed ids: {place}", highlight=False, soft_wrap=True, markup=False)
        apart = f", {seconds - loading:.1f} s of it computing" if loading >= _LONG else ""
        console.print(f"[dim]{seconds:.1f} s in all{apart}[/dim]", highlight=False)
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
