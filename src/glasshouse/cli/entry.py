"""The entry point: commands are registered, and faults of input become lines on standard error."""

from __future__ import annotations

from typing import NoReturn

import typer

from glasshouse.cli import audit, check, compare, lists, lookup, report, reproduce, score
from glasshouse.cli.app import app
from glasshouse.errors import InputError
from glasshouse.progress import work_so_far

__all__ = ["main"]

COMMANDS = (audit, score, report, compare, check, lookup, reproduce, lists)  # each registers itself when it is imported


def main() -> NoReturn:
    """Entry point: input faults are one line each on standard error, and exit code 2."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        for fault in error.faults:
            typer.echo(fault, err=True)
        count = len(error.faults)
        problems = f"{count} problem{'s' if count > 1 else ''}"
        stopped = "; the run was stopped. " + " ".join(work_so_far()) if work_so_far() else ", nothing was run."
        typer.echo(problems + stopped, err=True)
        raise SystemExit(2) from None
    raise SystemExit(0)
