"""``glasshouse doctor``: what this machine has, and how to get what is missing."""

from __future__ import annotations

import dataclasses
import json

import typer

from glasshouse.cli.app import app
from glasshouse.cli.checkup import checkup
from glasshouse.cli.options import Json

__all__ = ["doctor"]


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show versions, extras, GPU, cores, memory, browser and folders, and how to get what is missing."""
    facts = checkup()
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(fact) for fact in facts], ensure_ascii=False))
        return
    typer.echo("\n".join(fact.line for fact in facts))
    faults = sum(fact.status == "fault" for fact in facts)
    typer.echo("\nNothing is wrong." if not faults else f"\n{faults} of these must be mended for some audits.")
