"""``glasshouse new``: a script or an audit file to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.printing import say
from glasshouse.cli.starters import STARTERS, write_starter

__all__ = ["new"]

_KINDS = ", ".join(STARTERS.names())


def _kinds_starting_with(typed: str) -> list[str]:
    """What a shell offers after TAB."""
    return [name for name in STARTERS.names() if name.startswith(typed)]


@app.command()
def new(
    kind: Annotated[str, typer.Argument(help=f"What you train: {_KINDS}.", autocompletion=_kinds_starting_with)],
    folder: Annotated[Path, typer.Argument(help="Where to write; this folder by default.")] = Path(),
) -> None:
    """Write a commented script or audit file that runs as it stands, to put your own model and data into."""
    starter = STARTERS.find(kind)
    for path in write_starter(starter, folder):
        say(f"Written: {path}")
    there = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    typer.echo(f"It audits {starter.about}. Run it as it is, then change what is marked yours:\n  {there}{starter.run}")
