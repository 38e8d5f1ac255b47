"""``glasshouse report``: the page of an earlier run, rendered again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.options import Author, KeyFile, Memory, PolicyFile, Redact, Shared
from glasshouse.cli.printing import say
from glasshouse.cli.steps import checked, key_file
from glasshouse.config import read_policy
from glasshouse.reading import guarded
from glasshouse.report import Summary, read_run, read_run_with_records, render_html
from glasshouse.report.folder import list_page
from glasshouse.report.policy.stored import policy_of
from glasshouse.report.redacted import redacted_summary
from glasshouse.report.redaction import read_or_make_key
from glasshouse.store import check_page, write_file

__all__ = ["report"]


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as audit or score wrote it.")],
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the run's folder by default.")] = None,
    policy: PolicyFile = None,
    author: Author = None,
    redact: Redact = False,
    key: KeyFile = None,
    shared: Shared = False,
    memory: Memory = None,
) -> None:
    """Render the report of an earlier run again.

    With --redact, ids on the page become keyed hashes. The other files of the run keep them: pass on the page alone, or
    audit with --redact.
    """
    page = out or run / "report.html"
    summary = checked(
        lambda: read_run(run),
        lambda: check_page(page),
        lambda: None if policy is None else read_policy(policy),
        lambda: key_file(redact=redact, key=key, out=run),
    )
    place = None if summary.context.redacted else key_file(redact=redact, key=key, out=run)
    limits = policy_of(run) if policy is None else read_policy(policy)
    if author is not None:
        summary = dataclasses.replace(summary, context=dataclasses.replace(summary.context, author=author))
    if place is not None:
        summary = _redacted(summary, run, place)
    with guarded(run, what="a run that can be drawn"):
        text = render_html(summary, policy=limits)
    written = write_file(page, text)
    list_page(written)
    say(f"Report: {written.resolve()}")
    if place is not None:
        say(f"Key to the hashed ids: {place.resolve()}")
        say("Only this page is redacted; the other files of the run still hold the ids.")


def _redacted(summary: Summary, run: Path, place: Path) -> Summary:
    ids = read_run_with_records(run).records()["id"].tolist()
    return redacted_summary(summary, read_or_make_key(place), ids)
