"""``glasshouse verify``: whether the folder of a run or a pool is complete and unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.options import Memory
from glasshouse.cli.printing import say
from glasshouse.errors import InputError
from glasshouse.pool.folder import pool_faults
from glasshouse.report.folder import run_faults
from glasshouse.store import check_name, found_run

__all__ = ["verify"]

_DAMAGED = 3  # as for a limit that is exceeded: 1 and 2 are those of crashes and of wrong input


@app.command()
def verify(
    place: Annotated[Path, typer.Argument(help="Folder of a run or of a pool.")],
    memory: Memory = None,
) -> None:
    """Check every file of a run or a pool against its checksum: exit code 0 if all is well, 3 if something is not.

    A checksum shows damage and careless edits; who can write to the folder can also renew the checksums.
    """
    check_name(place)
    if (place / "pool.json").is_file():
        count, faults = pool_faults(place)
        well = f"{count} models are complete and unchanged."
    elif (found_run(place) / "run.json").is_file():
        faults, well = run_faults(place), "every file is there and unchanged, and no other."
    else:
        raise InputError(f"{place}: is not the folder of a run (run.json) or of a pool (pool.json).")
    say(*faults)
    if faults:
        say(f"{place}: {len(faults)} problem{'s' if len(faults) > 1 else ''}.")
        raise typer.Exit(_DAMAGED)
    say(f"{place}: {well}")
