"""``glasshouse appendix``: the evidence file of a run, for whoever must answer a regulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.options import Memory, Shared
from glasshouse.cli.printing import say
from glasshouse.cli.steps import checked
from glasshouse.config import read_policy
from glasshouse.reading import guarded
from glasshouse.report import read_run
from glasshouse.report.appendix import evidence_file, render_appendix, render_appendix_markdown
from glasshouse.report.folder import list_page, written_at
from glasshouse.report.policy import judge
from glasshouse.store import check_page, digest, found_run, write_file

__all__ = ["appendix"]


@app.command()
def appendix(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as audit or score wrote it.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the two files; the run's own by default.")] = None,
    policy: Annotated[Path | None, typer.Option(help="A policy file: its findings become a part.")] = None,
    shared: Shared = False,
    memory: Memory = None,
) -> None:
    """Write the evidence file: what was measured, declared and assumed, beside what regulators and standards ask."""
    pages = [(out or run) / name for name in ("appendix.md", "appendix.html")]
    summary = checked(lambda: read_run(run), *[lambda page=page: check_page(page) for page in pages])
    written = written_at(run)
    findings = () if policy is None else judge(summary, read_policy(policy), written=written).findings
    with guarded(run, what="a run that can be described"):
        checksum = digest(found_run(run) / "metrics.json")
        found = evidence_file(summary, written=written, checksum=checksum, findings=findings)
        texts = render_appendix_markdown(found), render_appendix(found)
    for page, text in zip(pages, texts, strict=True):
        say(f"Evidence file: {write_file(page, text).resolve()}")
        list_page(page)
    say(f"{len(found.supply)} points are still to be supplied by you; they come first in the file.")
