"""``glasshouse check``: judge a run by a policy."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.options import Json, Memory, Shared
from glasshouse.cli.printing import say
from glasshouse.cli.steps import checked
from glasshouse.config import read_policy
from glasshouse.reading import guarded
from glasshouse.report import read_run
from glasshouse.report.folder import written_at
from glasshouse.report.policy import judge, junit_xml
from glasshouse.store import check_page, write_file

__all__ = ["check"]

_CHECKED = {
    "passed": "every limit of the policy is kept.",
    "failed": "a limit of the policy is not kept.",
    "unknown": "the run cannot tell whether the policy is kept; this does not pass.",
}


@app.command()
def check(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as audit or score wrote it.")],
    policy: Annotated[Path, typer.Option(help="The limits: a YAML file.")],
    junit: Annotated[Path | None, typer.Option(help="Write the findings as JUnit XML, for a build server.")] = None,
    shared: Shared = False,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Judge a run by a policy: exit code 0 if no limit is exceeded, 3 if one is, 4 if the run is inconclusive."""
    limits = checked(lambda: read_policy(policy), lambda: None if junit is None else check_page(junit))
    summary = read_run(run)
    with guarded(run, what="a run that can be judged"):
        verdict = judge(summary, limits, written=written_at(run))
    if junit is not None:
        write_file(junit, junit_xml(verdict, name=str(run)))
    if as_json:
        findings = [dataclasses.asdict(one) for one in verdict.findings]
        typer.echo(json.dumps({"status": verdict.status, "findings": findings}))
    else:
        say(*(one.line for one in verdict.findings), f"{run}: {_CHECKED[verdict.status]}")
    raise typer.Exit(verdict.exit_code)
