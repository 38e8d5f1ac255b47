"""The entry point: commands are registered, and faults of input become lines on standard error."""

from __future__ import annotations

from typing import NoReturn

from glasshouse.cli import appendix, audit, check, compare, doctor, lists, lookup, new, report, reproduce, score
from glasshouse.cli.app import app
from glasshouse.cli.printing import say
from glasshouse.errors import InputError, LeftOutError
from glasshouse.progress import work_so_far

__all__ = ["main"]

# each registers itself when it is imported
COMMANDS = (new, audit, score, report, compare, check, appendix, lookup, reproduce, lists, doctor)


def main() -> NoReturn:
    """Entry point: input faults are one line each on standard error, and exit code 2."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        say(*error.faults, err=True)
        count = len(error.faults)
        problems = f"{count} problem{'s' if count > 1 else ''}"
        if not work_so_far():
            ended = ", nothing was run."
        elif isinstance(error, LeftOutError):
            ended = "; everything else is finished and kept."
        else:
            ended = "; the run was stopped. " + " ".join(work_so_far())
        say(problems + ended, err=True)
        raise SystemExit(2) from None
    raise SystemExit(0)
