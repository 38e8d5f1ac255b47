"""``glasshouse audit``, ``plan`` before the training, ``score`` from saved evidence, and ``advise``."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from glasshouse.auditing.call import DEFAULT_ATTACKS, audit_evidence
from glasshouse.auditing.options import Attacker, Evaluation
from glasshouse.auditing.plan import Plan, plan_canaries, plan_members
from glasshouse.cli import steps
from glasshouse.cli.app import app, interruptible, say
from glasshouse.compute import RayCluster, chosen_compute
from glasshouse.config import AuditFile, advise_audit_file, read_audit_file, run_audit_file, with_options
from glasshouse.config.data import FileData
from glasshouse.core.errors import InputError
from glasshouse.core.escape import visible
from glasshouse.data.design import as_design
from glasshouse.data.named import Dataset
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evaluation.privacy.bounds import canaries_for
from glasshouse.evidence import Mode, read_evidence
from glasshouse.io.caches import keep_code_private
from glasshouse.io.files import check_free, check_page, resolved, write_file
from glasshouse.report import read_run, render_advice, render_html
from glasshouse.report.policy import policy_of
from glasshouse.report.run_folder import keep_advice, list_page, searched_records

_NEXT = """
Next, audit your own model. `glasshouse new table` writes an audit file to start from (torch, sklearn, gnn: a script).
Or write one of these lines into audit.yaml and run: glasshouse audit audit.yaml
  graph: {name: cora}                                    # its files are under GLASSHOUSE_DATA; or your my_graph.npz
  data: {name: file, path: people.csv, label: income}    # your own records, with trainer: {kind: sklearn, …}"""


@app.command()
@steps.with_output
def audit(
    file: Annotated[
        Path | None, typer.Argument(help="Audit file; without one, an embedded synthetic graph is audited.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the run: report, figures and records.")] = Path("runs/audit"),
    attacks: Annotated[
        list[str] | None,
        typer.Option("--attack", "-a", help="Attack to run instead of those in the file; may be repeated."),
    ] = None,
    shadows: Annotated[
        int | None,
        typer.Option(help="Number of shadow models, instead of that in the file; 0 is a quick look at records."),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Number of nodes to audit, drawn at random; default: all.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Time budget of a graph audit; work is cut to fit.")] = None,
    advise: Annotated[
        float | None, typer.Option(help="Minutes for trying defences afterwards; the report quotes the advised one.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed, instead of that in the file.")] = None,
    pool: Annotated[str | None, typer.Option(help="Folder that keeps shadow models for later audits.")] = None,
    workers: steps.Workers = None,
    cluster: Annotated[
        str | None, typer.Option(help="Ray cluster that trains and scores: auto, or ray://host:port.")
    ] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs per cluster task (0.5: two tasks share one).")] = None,
    trust_code: steps.TrustCode = False,
    *,
    output: steps.Output,
) -> None:
    """Train shadow models, attack the target, and write a report."""
    started = time.perf_counter()
    config, policy, key = output.checked(out, lambda: AuditFile() if file is None else read_audit_file(file))
    kept = None if pool is None else str(resolved(pool))
    config = with_options(
        config,
        attacks=attacks or None,
        shadows=shadows,
        nodes=nodes,
        minutes=minutes,
        advise=advise,
        seed=seed,
        pool=kept,
    )
    compute = chosen_compute(workers=workers, cluster=cluster, gpus=gpus)
    if isinstance(compute, RayCluster):
        compute.check()
    if config.is_graph:
        importlib.import_module("glasshouse.graph.audit")  # now, so that loading does not count as computing
    keep_code_private()  # before a factory of the user's own has anything compiled
    computing = time.perf_counter()
    reading = {"compute": compute, "trust_code": trust_code, "bounded": True}
    with interruptible(out), _named(file):
        result = run_audit_file(config, folder=file.parent if file else Path.cwd(), progress=output.progress, **reading)
    if file is not None:  # for `glasshouse advise RUN`
        result = steps.with_setting(result, "audit_file", str(file))
    seconds = time.perf_counter() - started
    steps.finish(result, output, out=out, policy=policy, key=key, seconds=seconds, loading=computing - started)
    if file is None and not output.as_json:
        typer.echo(_NEXT)


@contextmanager
def _named(file: Path | None) -> Iterator[None]:
    """Faults inside the block under the name of the audit file."""
    try:
        yield
    except InputError as error:
        raise error if file is None else InputError(*[_placed(fault, file) for fault in error.faults]) from error


def _placed(fault: str, file: Path) -> str:
    """A fault under the name of the audit file, unless it already names a file."""
    named = fault.startswith(str(file)) or ": " not in fault or "/" in fault.split(":")[0]
    return fault if named else f"{file}: {fault}"


@app.command()
def advise(
    file: Annotated[Path, typer.Argument(help="Audit file, or the folder of a run that was made from one.")],
    out: Annotated[Path, typer.Option(help="Folder for the page, the figures and the shadow pools.")] = Path(
        "runs/advice"
    ),
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Time budget: what is not finished by then is left out.")
    ] = None,
    cost: Annotated[
        float, typer.Option(min=0, max=100, help="Points of accuracy that the advised defence may cost.")
    ] = 1.0,
    workers: steps.Workers = None,
    trust_code: steps.TrustCode = False,
    shared: steps.Shared = False,
    memory: steps.Memory = None,
    quiet: steps.Quiet = False,
) -> None:
    """Try the defences that fit the model of an audit file: what each gains and costs. Run it again to go on."""
    run, file = file, _audit_file_of(file)
    config, _ = steps.checked(lambda: read_audit_file(file), lambda: check_page(out / "advice.html"))
    keep_code_private()
    with interruptible(), _named(file):
        found = advise_audit_file(
            config,
            folder=file.parent,
            minutes=minutes,
            pool=resolved(out) / "pools",
            most_accuracy=cost / 100,
            progress=False if quiet else None,
            compute=chosen_compute(workers=workers, cluster=None, gpus=None),
            trust_code=trust_code,
            bounded=True,
        )
    write_file(out / "advice.csv", found.table().to_csv())
    page = write_file(out / "advice.html", render_advice(found, title=f"Defences for {file.name}"))
    if run != file:  # the page of the run quotes what was measured
        keep_advice(run, found)
        summary = read_run(run)
        text = render_html(summary, policy=policy_of(run), searched=searched_records(run, summary))
        list_page(write_file(run / "report.html", text))
    say(*found.sentences(), *(f"Not measured: {name}: {why}" for name, why in found.left_out.items()))
    say(f"Report: {page.resolve()}")


def _audit_file_of(path: Path) -> Path:
    """The audit file that a run was made from, if this is a run's folder."""
    if not (path / "run.json").is_file():
        return path
    named = read_run(path).context.settings.get("audit_file")
    if not named:
        raise InputError(f"{path}: was not made from an audit file. Give the file, or use glasshouse.advise in Python.")
    return Path(str(named))


@app.command()
@steps.with_output
def score(
    evidence: Annotated[Path, typer.Argument(help="Losses, logits or probabilities: .npz, .csv or .parquet.")],
    attacks: steps.Attacks = None,
    mode: Annotated[str, typer.Option(help="online or offline.")] = "online",
    fprs: Annotated[
        list[float] | None, typer.Option("--fpr", help="False-positive rate to evaluate at; may be repeated.")
    ] = None,
    prior: Annotated[float, typer.Option(help="Share of members that the attacker expects.")] = 0.5,
    epsilon: Annotated[float | None, typer.Option(help="Claimed ε to judge.")] = None,
    delta: Annotated[float, typer.Option(help="δ of the claimed ε.")] = 0.0,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; without it, the table is only printed.")] = None,
    seed: steps.Seed = 0,
    *,
    output: steps.Output,
) -> None:
    """Attack saved evidence: no model, no training."""
    started = time.perf_counter()
    if mode not in ("online", "offline"):
        raise InputError(f'--mode: "{mode}" is not a mode; use online or offline.')
    found, policy, key = output.checked(out, lambda: read_evidence(evidence))
    known: Mode = "online" if mode == "online" else "offline"
    claim = None if epsilon is None else PrivacyClaim(epsilon=epsilon, delta=delta)
    with interruptible(out):
        result = audit_evidence(
            found.evidence,
            members=found.members,
            attacks=attacks or DEFAULT_ATTACKS,
            mode=known,
            attacker=Attacker(prior=prior),
            evaluation=Evaluation(fprs=fprs or None, claim=claim),
            seed=seed,
            title=f"Membership audit of {visible(evidence.name)}",
            progress=output.progress,
        )
    steps.finish(result, output, out=out, policy=policy, key=key, seconds=time.perf_counter() - started)


_SHOWN = 0.6  # of the expected ε, that canaries are planned to show


@app.command()
def plan(
    data: Annotated[Path, typer.Argument(help="Table (.csv, .parquet, .npz), or an audit file with a section data.")],
    out: Annotated[Path, typer.Option(help="Folder for the plan; keep its secret.json to yourself.")] = Path("plan"),
    label: Annotated[str, typer.Option(help="Column of the labels.")] = "label",
    ids: Annotated[str | None, typer.Option("--id", help="Column of the records' names.")] = None,
    unit: Annotated[str | None, typer.Option(help="Column that says whose record each one is.")] = None,
    canaries: Annotated[int | None, typer.Option(min=2, help="Plan so many mislabelled canaries.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Plan as many canaries as show 60 % of this ε in four of five audits.")
    ] = None,
    design: Annotated[str | None, typer.Option(help="Plan members: units, records, strata or site.")] = None,
    by: Annotated[str | None, typer.Option(help="With strata and site: the column; label is one too.")] = None,
    share: Annotated[float, typer.Option(min=0.01, max=0.99, help="Chance of a unit, or of a canary, to train.")] = 0.5,
    salt: Annotated[
        str | None, typer.Option(help="Hexadecimal; by default fresh, so that nobody can guess it.")
    ] = None,
    overwrite: steps.Overwrite = False,
    shared: steps.Shared = False,
    memory: steps.Memory = None,
) -> None:
    """Before the training: draw members or canaries by coins, and commit to them. The audit then assumes no draw."""
    found, _ = steps.checked(
        lambda: _read(data, label=label, ids=ids, unit=unit, by=by), lambda: check_free(out, overwrite=overwrite)
    )
    if epsilon is not None:
        if canaries is not None:
            raise InputError("--canaries: is what --epsilon plans; leave one of them out.")
        canaries = canaries_for(epsilon, shown=_SHOWN * epsilon, share=share)
    if canaries is not None:
        if design is not None:
            raise InputError("--design: is for members; canaries are drawn one by one. Leave one of them out.")
        made: Plan = plan_canaries(found.population, canaries=canaries, share=share, salt=salt)
        what = f"{canaries} canaries with a wrong label, {int(made.members[made.canaries].sum())} of them inside"
    else:
        kind = as_design(None if design is None else {"name": design, **({} if by is None else {"by": by})})
        columns = dict(found.groups)
        made = plan_members(found.population, design=kind, share=share, columns=columns, salt=salt)
        what = f"{int(made.members.sum())} of {len(found.population)} records inside; {made.design}"
    made.save(out, found.population, overwrite=overwrite)
    say(f"Planned: {what}.")
    say(f"Train on the ids and labels in {out / 'train.csv'}, all of them and no others.")
    say(f"Publish this before the training: {made.commitment}")
    say(f"Keep {out / 'secret.json'} secret until the audit, whose file then says: plan: {out}")


def _read(path: Path, *, label: str, ids: str | None, unit: str | None, by: str | None) -> Dataset:
    """The records of a table, or of the section ``data`` of an audit file."""
    if path.suffix in (".yaml", ".yml"):
        config = read_audit_file(path)
        if config.data is None:
            raise InputError(f"{path}: has no section data; a plan needs records.")
        return config.data.load(path.parent, config.seed)
    groups = () if by in (None, "label", label) else (by,)
    section = FileData.model_validate(
        {"name": "file", "path": path.name, "label": label, "id": ids, "unit": unit, "groups": groups}
    )
    return section.load(path.parent, 0)
