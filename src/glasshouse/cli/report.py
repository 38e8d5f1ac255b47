"""``glasshouse report``: the page of an earlier run, rendered again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.options import Memory, Shared
from glasshouse.cli.printing import say
from glasshouse.cli.steps import checked
from glasshouse.reading import guarded
from glasshouse.report import read_run, render_html
from glasshouse.store import check_page, write_file

__all__ = ["report"]


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as audit or score wrote it.")],
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the run's folder by default.")] = None,
    shared: Shared = False,
    memory: Memory = None,
) -> None:
    """Render the report of an earlier run again."""
    page = out or run / "report.html"
    summary = checked(lambda: read_run(run), lambda: check_page(page))
    with guarded(run, what="a run that can be drawn"):
        text = render_html(summary)
    place = write_file(page, text)
    say(f"Report: {place.resolve()}")
