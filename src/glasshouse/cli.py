"""The command line: ``glasshouse audit``, ``score``, ``report``, ``compare`` and ``check``."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console

from glasshouse.attacks import attack_names
from glasshouse.audit import DEFAULT_ATTACKS, audit_evidence
from glasshouse.compute import chosen_compute
from glasshouse.config import (
    AuditFile,
    data_names,
    read_audit_file,
    read_policy,
    run_audit_file,
    with_attacks,
    with_shadows,
)
from glasshouse.errors import InputError, raise_faults
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evidence import Mode, read_evidence
from glasshouse.progress import work_so_far
from glasshouse.report import compare as compare_runs
from glasshouse.report import print_summary, read_run, read_run_with_records, render_comparison, render_html
from glasshouse.report.folder import written_at
from glasshouse.report.plain import metrics_json
from glasshouse.report.policy import judge, junit_xml
from glasshouse.result import AuditResult
from glasshouse.store import check_free, check_page, write_file

__all__ = ["app", "main"]

app = typer.Typer(
    help="Tells the owner of a trained model how visible its training records are from outside.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_NEXT = """
Next, audit a real one. Write one of these into audit.yaml and run: glasshouse audit audit.yaml
  graph: {name: cora}                                    # its files under GLASSHOUSE_DATA; or your own my_graph.npz
  data: {name: file, path: people.csv, label: income}    # your own records, with trainer: {kind: sklearn, …}"""

_NO_GRAPH = "  none here: the extra `graph` is not installed. Run: pip install 'glasshouse[graph]'"
_NO_EXPERIMENTS = (
    "reproduce: the paper's experiments are not part of the installed package. "
    "In a source tree of Glasshouse, run: pip install ./experiments"
)

_CHECKED = {
    "passed": "every limit of the policy is kept.",
    "failed": "a limit of the policy is not kept.",
    "unknown": "the run cannot tell whether the policy is kept; this does not pass.",
}

Found = TypeVar("Found")
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, for machines.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the same folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]


@app.command()
def audit(
    file: Annotated[Path | None, typer.Argument(help="AUDIT.yaml; without one, the embedded default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the run: report, figures, records.")] = Path("runs/audit"),
    attacks: Annotated[
        list[str] | None, typer.Option("--attack", "-a", help="An attack instead of the file's; repeat for more.")
    ] = None,
    shadows: Annotated[
        int | None, typer.Option(help="How many shadow models, instead of the file's; 0 is a quick look at records.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Use this seed instead of the file's.")] = None,
    pool: Annotated[str | None, typer.Option(help="Folder that keeps shadow models for later audits.")] = None,
    workers: Annotated[int | None, typer.Option(help="Local processes to train shadow models with.")] = None,
    cluster: Annotated[str | None, typer.Option(help="A Ray cluster instead: auto, or ray://host:port.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train shadow models, attack the target, and write a report."""
    started = time.perf_counter()
    config = _checked(
        lambda: AuditFile() if file is None else read_audit_file(file), lambda: check_free(out, overwrite=overwrite)
    )
    given = {"seed": seed, "pool": None if pool is None else str(Path(pool).resolve())}
    config = config.model_copy(update={name: value for name, value in given.items() if value is not None})
    config = with_attacks(config, attacks) if attacks else config
    config = config if shadows is None else with_shadows(config, shadows)
    compute = chosen_compute(workers=workers, cluster=cluster)
    with _interruptible(out):
        try:
            result = run_audit_file(
                config,
                folder=file.parent if file else Path.cwd(),
                compute=compute,
                progress=False if quiet or as_json else None,
            )
        except InputError as error:
            raise error if file is None else InputError(*[_placed(fault, file) for fault in error.faults]) from error
    _finish(result, out=out, overwrite=overwrite, as_json=as_json, seconds=time.perf_counter() - started)
    if file is None and not as_json:
        typer.echo(_NEXT)


@app.command()
def score(
    evidence: Annotated[Path, typer.Argument(help="Losses, logits or probabilities: .npz, .csv or .parquet.")],
    attacks: Annotated[list[str] | None, typer.Option("--attack", "-a", help="An attack; repeat for more.")] = None,
    mode: Annotated[str, typer.Option(help="online or offline.")] = "online",
    fprs: Annotated[list[float] | None, typer.Option("--fpr", help="A false-positive rate; repeat for more.")] = None,
    prior: Annotated[float, typer.Option(help="Share of members that the attacker expects.")] = 0.5,
    epsilon: Annotated[float | None, typer.Option(help="A claimed ε to judge.")] = None,
    delta: Annotated[float, typer.Option(help="The δ that goes with it.")] = 0.0,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; without it, only the table is printed.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack from saved evidence alone: no model, no training."""
    started = time.perf_counter()
    if mode not in ("online", "offline"):
        raise InputError(f'--mode: "{mode}" is not a mode; use online or offline.')
    found = _checked(
        lambda: read_evidence(evidence), lambda: None if out is None else check_free(out, overwrite=overwrite)
    )
    checked: Mode = "online" if mode == "online" else "offline"
    with _interruptible(out):
        result = audit_evidence(
            found.evidence,
            members=found.members,
            attacks=attacks or DEFAULT_ATTACKS,
            mode=checked,
            fprs=fprs or None,
            prior=prior,
            claim=None if epsilon is None else PrivacyClaim(epsilon=epsilon, delta=delta),
            seed=seed,
            title=f"Membership audit of {evidence.name}",
            progress=False if quiet or as_json else None,
        )
    _finish(result, out=out, overwrite=overwrite, as_json=as_json, seconds=time.perf_counter() - started)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as audit or score wrote it.")],
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the run's folder by default.")] = None,
) -> None:
    """Render the report of an earlier run again."""
    page = out or run / "report.html"
    summary = _checked(lambda: read_run(run), lambda: check_page(page))
    place = write_file(page, render_html(summary))
    typer.echo(f"Report: {place.resolve()}")


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs; the first is the baseline.")],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("compare.html"),
    attack: Annotated[
        str | None, typer.Option("--attack", "-a", help="The attack to compare; else by simulated targets.")
    ] = None,
) -> None:
    """Put runs side by side: what a defence buys, what it costs, and whether that is more than chance."""
    found = _checked(
        lambda: {name: read_run_with_records(run) for name, run in _named(runs).items()}, lambda: check_page(out)
    )
    comparison = compare_runs(found, attack=attack)
    place = write_file(out, render_comparison(comparison))
    typer.echo("\n".join([comparison.verdict, *comparison.notes]))
    typer.echo(f"Report: {place.resolve()}")


@app.command()
def check(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as audit or score wrote it.")],
    policy: Annotated[Path, typer.Option(help="The limits: a YAML file.")],
    junit: Annotated[Path | None, typer.Option(help="Write the findings as JUnit XML, for a build server.")] = None,
    as_json: Json = False,
) -> None:
    """Judge a run by a policy: exit code 0 if every limit is kept, 1 if one is not, 2 if the run cannot tell."""
    limits = _checked(lambda: read_policy(policy), lambda: None if junit is None else check_page(junit))
    verdict = judge(read_run(run), limits, written=written_at(run))
    if junit is not None:
        write_file(junit, junit_xml(verdict, name=str(run)))
    if as_json:
        findings = [dataclasses.asdict(one) for one in verdict.findings]
        typer.echo(json.dumps({"status": verdict.status, "findings": findings}, ensure_ascii=False))
    else:
        typer.echo("\n".join(one.line for one in verdict.findings))
        typer.echo(f"{run}: {_CHECKED[verdict.status]}")
    raise typer.Exit(verdict.exit_code)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment, or all; a wrong name lists them.")],
    preset: Annotated[str, typer.Option(help="quick or paper.")] = "quick",
    dataset: Annotated[list[str] | None, typer.Option(help="A data set; repeat for more.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for CSV, pictures and Markdown.")] = Path("results"),
    pools: Annotated[Path, typer.Option(help="Folder that keeps models and scores.")] = Path("runs/pools"),
    seed: Annotated[int, typer.Option(min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper, and print our figures beside those of the paper."""
    _find_experiments()
    import glasshouse_experiments as experiments

    options: dict[str, Any] = {"preset": preset, "datasets": dataset or None, "out": out, "pools": pools, "seed": seed}
    options["progress"] = False if quiet else None
    found = experiments.reproduce_all(**options) if name == "all" else [(name, experiments.reproduce(name, **options))]
    console = Console(width=None if sys.stdout.isatty() else 160)
    for title, table in found:
        experiments.show(table, title=f"{title}, preset {preset}", console=console)


@app.command()
def attacks() -> None:
    """List the attacks, by the names to use in files and options; those that need a graph come last."""
    on_records = attack_names(graph=False)
    typer.echo("\n".join(on_records))
    typer.echo("\nOn graphs also:")
    typer.echo("\n".join(name for name in attack_names() if name not in on_records))
    if not _graph_installed():
        typer.echo(_NO_GRAPH)


@app.command()
def datasets() -> None:
    """List the data sets, by the names to use in files."""
    typer.echo("data: {name: …}")
    for name, about in data_names().items():
        typer.echo(f"  {name:<10}{about}")
    typer.echo("\ngraph: {name: …}")
    if not _graph_installed():
        typer.echo(_NO_GRAPH)
        return
    from glasshouse.graph.data.datasets import graph_names

    typer.echo("\n".join(f"  {name}" for name in graph_names()))
    typer.echo("  torch_geometric:CLASS or torch_geometric:CLASS:NAME, or your own my_graph.npz")


def _find_experiments() -> None:
    """Make the package of the paper's experiments importable; the one beside ``src`` in a source tree comes first."""
    beside = Path(__file__).resolve().parents[2] / "experiments"
    if (beside / "glasshouse_experiments").is_dir():
        sys.path.insert(0, str(beside))
    elif find_spec("glasshouse_experiments") is None:
        raise InputError(_NO_EXPERIMENTS)


def _graph_installed() -> bool:
    return find_spec("torch_geometric") is not None


@contextmanager
def _interruptible(out: Path | None) -> Iterator[None]:
    """End with one line, and the exit code of an interrupted command, when the user stops the long work."""
    try:
        yield
    except KeyboardInterrupt:
        written = "" if out is None else f" Nothing was written to {out}."
        typer.echo(" ".join([f"Stopped.{written}", *work_so_far()]), err=True)
        raise typer.Exit(130) from None


def _finish(result: AuditResult, *, out: Path | None, overwrite: bool, as_json: bool, seconds: float) -> None:
    """Save, print, and show where the report is; figures that cannot be saved are still printed."""
    fault: InputError | None = None
    if out is not None:
        try:
            result.save(out, overwrite=overwrite)
        except InputError as error:
            fault = error
    if as_json:
        typer.echo(json.dumps(metrics_json(result.summary()), ensure_ascii=False))
    else:
        console = Console(width=None if sys.stdout.isatty() else 140)
        print_summary(result.summary(), console)
        console.print()
        if out is not None and fault is None:
            console.print(f"Report: {(out / 'report.html').resolve()}", highlight=False, soft_wrap=True)
        console.print(f"[dim]{seconds:.1f} s in all[/dim]", highlight=False)
    if fault is not None:
        raise fault


def _checked(read: Callable[[], Found], *checks: Callable[[], object]) -> Found:
    """What ``read`` gives, if every check passes too; else the faults of all of them, those of ``read`` first."""
    faults: list[str] = []
    found: list[Found] = []
    for step in (lambda: found.append(read()), *checks):
        try:
            step()
        except InputError as error:
            faults.extend(error.faults)
    raise_faults(faults)
    return found[0]


def _named(runs: list[Path]) -> dict[str, Path]:
    """Runs by the names of their folders; by their full paths if two names are equal."""
    short = {run.resolve().name: run for run in runs}
    named = short if len(short) == len(runs) else {str(run): run for run in runs}
    if len(named) < len(runs):
        raise InputError("runs: one of them is given twice; give each run once.")
    return named


def _placed(fault: str, file: Path) -> str:
    """A fault under the name of the audit file, unless it already names a file."""
    return (
        fault if fault.startswith(str(file)) or ": " not in fault or "/" in fault.split(":")[0] else f"{file}: {fault}"
    )


def main() -> NoReturn:
    """Entry point: input faults are one line each on standard error, and exit code 2."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        for fault in error.faults:
            typer.echo(fault, err=True)
        count = len(error.faults)
        problems = f"{count} problem{'s' if count > 1 else ''}"
        stopped = "; the run was stopped. " + " ".join(work_so_far()) if work_so_far() else ", nothing was run."
        typer.echo(problems + stopped, err=True)
        raise SystemExit(2) from None
    raise SystemExit(0)


if __name__ == "__main__":
    main()
