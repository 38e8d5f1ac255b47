"""``glasshouse compare``: runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.options import Memory, Shared
from glasshouse.cli.printing import say
from glasshouse.cli.steps import checked
from glasshouse.errors import InputError
from glasshouse.reading import guarded
from glasshouse.report import compare as compare_runs
from glasshouse.report import read_run_with_records, render_comparison
from glasshouse.store import check_page, resolved, write_file

__all__ = ["compare"]


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs; the first is the baseline.")],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("compare.html"),
    attack: Annotated[
        str | None, typer.Option("--attack", "-a", help="The attack to compare; else by simulated targets.")
    ] = None,
    shared: Shared = False,
    memory: Memory = None,
) -> None:
    """Put runs side by side: what a defence buys, what it costs, and whether that is more than chance."""
    found = checked(
        lambda: {name: read_run_with_records(run) for name, run in _named(runs).items()}, lambda: check_page(out)
    )
    with guarded("runs", what="runs that can be compared"):
        comparison = compare_runs(found, attack=attack)
        text = render_comparison(comparison)
    place = write_file(out, text)
    say(comparison.verdict, *comparison.notes)
    say(f"Report: {place.resolve()}")


def _named(runs: list[Path]) -> dict[str, Path]:
    """Runs by the names of their folders; by their full paths if two names are equal."""
    short = {resolved(run).name: run for run in runs}
    named = short if len(short) == len(runs) else {str(run): run for run in runs}
    if len(named) < len(runs):
        raise InputError("runs: one of them is given twice; give each run once.")
    return named
