"""Commands on saved runs: ``report``, ``compare``, ``verify``, ``lookup``, ``appendix``, ``index`` and ``check``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli import steps
from glasshouse.cli.app import EXITS, app, say
from glasshouse.config import read_policy, read_supplied
from glasshouse.core.errors import InputError, shortened
from glasshouse.io.files import check_name, check_page, digest, found_run, resolved, write_file
from glasshouse.io.guarded import file_size, guarded, read_content
from glasshouse.pool.folder import pool_faults
from glasshouse.report import appendix as evidence
from glasshouse.report import compare as compare_runs
from glasshouse.report import read_run, read_run_with_records, render_comparison, render_html
from glasshouse.report.index import index_runs
from glasshouse.report.policy import judge, junit_xml, policy_of
from glasshouse.report.redaction import read_or_make_key, redacted_summary
from glasshouse.report.run_folder import list_page, run_faults, searched_records


@app.command()
def report(
    run: steps.RunFolder,
    out: Annotated[Path | None, typer.Option(help="Page to write. Default: report.html in the run's folder.")] = None,
    policy: steps.PolicyFile = None,
    author: steps.Author = None,
    redact: steps.Redact = False,
    key: steps.KeyFile = None,
    shared: steps.Shared = False,
    memory: steps.Memory = None,
) -> None:
    """Render the report of an earlier run again.

    With --redact, ids on the page become keyed hashes. The other files of the run still contain the ids: share only the
    page, or audit with --redact.
    """
    page = out or run / "report.html"
    summary, _, limits, place = steps.checked(
        lambda: read_run(run),
        lambda: check_page(page),
        lambda: steps.limits_of(policy),
        lambda: steps.key_file(redact=redact, key=key, out=run),
    )
    place = None if summary.context.redacted else place
    limits = limits or policy_of(run)
    if author is not None:
        summary = dataclasses.replace(summary, context=dataclasses.replace(summary.context, author=author))
    if place is not None:
        ids = read_run_with_records(run).records()["id"].tolist()
        summary = redacted_summary(summary, read_or_make_key(place), ids)
    with guarded(run, what="a run that can be drawn"):
        searched = None if place is not None else searched_records(run, summary)  # its ids are not redacted
        text = render_html(summary, policy=limits, searched=searched)
    written = write_file(page, text)
    list_page(written)
    say(f"Report: {written.resolve()}")
    if place is not None:
        say(f"Key to the hashed ids: {place.resolve()}")
        say("Only this page is redacted; the other files of the run still contain the ids.")


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs; the first is the baseline.")],
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("compare.html"),
    attack: Annotated[
        str | None, typer.Option("--attack", "-a", help="Attack to compare; by default the best on simulated targets.")
    ] = None,
    shared: steps.Shared = False,
    memory: steps.Memory = None,
) -> None:
    """Compare runs: what a defence gains and costs, and whether the difference is more than chance."""
    found, _ = steps.checked(
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


@app.command(epilog=EXITS)
def verify(
    place: Annotated[Path, typer.Argument(help="Folder of a run or a pool.")],
    memory: steps.Memory = None,
) -> None:
    """Check every file of a run or pool against its checksum.

    Checksums show damage and accidental edits; anyone who can write to the folder can also renew them.
    """
    check_name(place)
    if (place / "pool.json").is_file():
        count, faults = pool_faults(place)
        well = f"{count} models are complete and unchanged."
    elif (found_run(place) / "run.json").is_file():
        faults, well = run_faults(place), "every file is present and unchanged, and there are no others."
    else:
        raise InputError(f"{place}: is not the folder of a run (run.json) or of a pool (pool.json).")
    say(*faults)
    if faults:
        say(f"{place}: {len(faults)} problem{'s' if len(faults) > 1 else ''}.")
        raise typer.Exit(3)
    say(f"{place}: {well}")


_LONGEST = 1000  # letters of an id; an audit refuses ids of more than 256


@app.command()
def lookup(
    key: Annotated[Path, typer.Argument(help="Key file of the redacted run, such as runs/audit.key.")],
    names: Annotated[list[str] | None, typer.Argument(help="Ids; with --ids also hashes.")] = None,
    ids: Annotated[Path | None, typer.Option(help="Text file with all possible ids, one per line.")] = None,
) -> None:
    """Print the hash of each id in a redacted run; with --ids, also the id of each hash.

    A hash cannot be reversed: all ids in the file are hashed and compared.
    """
    file_size(key, missing="there is no such key.")
    redactor, wanted = read_or_make_key(key), names or []
    known = {} if ids is None else _ids_of(ids)
    with guarded("lookup", what="a list of ids"):
        "".join(wanted).encode()  # a name on the command line may be any bytes
    behind = {redactor.hash(name): name for name in known}
    if not wanted and not known:
        raise InputError("lookup: give ids, or --ids with a file of them.")
    for name in wanted or known:
        if name in behind:
            say(f"{name}  {behind[name]}")
        elif ids is None or name in known:
            say(f"{redactor.hash(name)}  {name}")
        else:
            say(f"{name}  is not an id of {ids}, nor the hash of one with this key")


def _ids_of(path: Path) -> dict[str, None]:
    """The lines of a text file, in order."""
    content = read_content(path, times=10)  # a short id takes about as many bytes in Python as ten letters of its file
    with guarded(path, what="a text file of ids"):
        found = dict.fromkeys(content.decode("utf-8-sig").splitlines())
    longest = max(found, key=len, default="")
    if len(longest) > _LONGEST:
        raise InputError(f"{path}: {shortened(longest)} is too long for an id; write one id per line.")
    return found


@app.command()
def appendix(
    run: steps.RunFolder,
    out: Annotated[Path | None, typer.Option(help="Folder for the files. Default: the run's folder.")] = None,
    policy: Annotated[Path | None, typer.Option(help="YAML file of limits; its findings are added.")] = None,
    supply: Annotated[
        Path | None,
        typer.Option(help="YAML form with what a run cannot say; an empty one is written if it is missing."),
    ] = None,
    shared: steps.Shared = False,
    memory: steps.Memory = None,
) -> None:
    """Write the evidence file: what was measured, declared and assumed, next to what regulators and standards ask."""
    pages = [(out or run) / name for name in ("appendix.md", "appendix.html", "appendix.json")]
    form = supply is not None and not supply.exists()
    summary, supplied, *_ = steps.checked(
        lambda: read_run(run),
        lambda: {} if supply is None or form else read_supplied(supply),
        *[lambda page=page: check_page(page) for page in pages],
    )
    findings = () if policy is None else judge(summary, read_policy(policy)).findings
    with guarded(run, what="a run that can be described"):
        checksum = digest(found_run(run) / "metrics.json")
        found = evidence.Appendix(summary, checksum, findings, supplied)
        renders = evidence.render_appendix_markdown, evidence.render_appendix, evidence.render_appendix_record
        texts = [render(found) for render in renders]
    for page, text in zip(pages, texts, strict=True):
        say(f"Evidence file: {write_file(page, text).resolve()}")
        list_page(page)
    if form and supply is not None:
        say(f"Form: {write_file(supply, evidence.supply_form()).resolve()}")
    if count := len(found.supply):
        told = "points still need your input; they come first in the file. Answer them in a form: --supply supply.yaml."
        say(f"{count} {told}")


@app.command()
def index(
    folder: Annotated[Path, typer.Argument(help="Folder with runs in it, at any depth up to four.")],
    out: Annotated[Path | None, typer.Option(help="Page to write. Default: index.html in the folder.")] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Audits",
    shared: steps.Shared = False,
    memory: steps.Memory = None,
) -> None:
    """Write a page over many runs: rating, model, date, and what changed since the run before on the same data."""
    page = out or folder / "index.html"
    found, _ = steps.checked(lambda: index_runs(folder), lambda: check_page(page))
    place = write_file(page, found.page(title=title))
    say(*(f"{run.date}  {run.rating.word}  {run.place}" for run in found.runs))
    say(*(f"{name}: could not be read: {fault}" for name, fault in found.refused.items()), err=True)
    say(f"Index: {place.resolve()}")


_CHECKED = {
    "passed": "every limit of the policy is met.",
    "failed": "a limit of the policy is exceeded.",
    "unknown": "the run is inconclusive, so the policy is not met.",
}


@app.command(epilog=EXITS)
def check(
    run: steps.RunFolder,
    policy: Annotated[
        Path | None, typer.Option(help="YAML file of limits. Default: the run's own policy, else the usual one.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="File for the findings as JUnit XML, for a build server.")] = None,
    shared: steps.Shared = False,
    memory: steps.Memory = None,
    as_json: steps.Json = False,
) -> None:
    """Judge a run by a policy: the exit code says whether a limit is exceeded."""
    limits, _ = steps.checked(lambda: steps.limits_of(policy), lambda: None if junit is None else check_page(junit))
    summary = read_run(run)
    with guarded(run, what="a run that can be judged"):
        verdict = judge(summary, limits or policy_of(run))
    if junit is not None:
        write_file(junit, junit_xml(verdict, name=str(run)))
    if as_json:
        findings = [dataclasses.asdict(one) for one in verdict.findings]
        typer.echo(json.dumps({"status": verdict.status, "findings": findings}))
    else:
        say(*(one.line for one in verdict.findings), f"{run}: {_CHECKED[verdict.status]}")
    raise typer.Exit(verdict.exit_code)
