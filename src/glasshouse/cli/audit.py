"""``glasshouse audit``: train shadow models, attack the target, write a report; ``score``: from saved evidence."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Annotated

import typer

from glasshouse.auditing.call import DEFAULT_ATTACKS, audit_evidence
from glasshouse.cli.app import app, interruptible
from glasshouse.cli.steps import (
    Author,
    Json,
    KeyFile,
    Memory,
    Overwrite,
    PolicyFile,
    Quiet,
    Redact,
    Shared,
    checked,
    finish,
    key_file,
)
from glasshouse.compute import RayCluster, chosen_compute
from glasshouse.config import (
    AuditFile,
    read_audit_file,
    read_policy,
    run_audit_file,
    with_attacks,
    with_minutes,
    with_nodes,
    with_shadows,
)
from glasshouse.core.errors import InputError
from glasshouse.core.escape import visible
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evidence import Mode, read_evidence
from glasshouse.io.caches import keep_code_private
from glasshouse.io.files import resolved
from glasshouse.io.folders import check_free

_NEXT = """
Next, audit a real one. `glasshouse new table` writes an audit file to begin with (or torch, sklearn, gnn: a script).
Or write one of these into audit.yaml and run: glasshouse audit audit.yaml
  graph: {name: cora}                                    # its files under GLASSHOUSE_DATA; or your own my_graph.npz
  data: {name: file, path: people.csv, label: income}    # your own records, with trainer: {kind: sklearn, …}"""


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
    nodes: Annotated[
        int | None, typer.Option(help="Audit a random sample of so many nodes of the graph, instead of all.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="How long an audit of a graph may take; it then plans what it gives up.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Use this seed instead of the file's.")] = None,
    pool: Annotated[str | None, typer.Option(help="Folder that keeps shadow models for later audits.")] = None,
    workers: Annotated[int | None, typer.Option(help="Local processes to train and score with.")] = None,
    cluster: Annotated[str | None, typer.Option(help="A Ray cluster instead: auto, or ray://host:port.")] = None,
    gpus: Annotated[
        float | None, typer.Option(help="GPUs of the cluster that each task reserves; 0.5: two share one.")
    ] = None,
    trust_code: Annotated[
        bool,
        typer.Option(
            "--trust-code/--no-trust-code", help="Run code that the file names: factories, graphs with pickle."
        ),
    ] = False,
    policy: PolicyFile = None,
    author: Author = None,
    redact: Redact = False,
    key: KeyFile = None,
    overwrite: Overwrite = False,
    shared: Shared = False,
    memory: Memory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train shadow models, attack the target, and write a report."""
    started = time.perf_counter()
    config = checked(
        lambda: AuditFile() if file is None else read_audit_file(file),
        lambda: check_free(out, overwrite=overwrite),
        lambda: None if policy is None else read_policy(policy),
        lambda: key_file(redact=redact, key=key, out=out),
    )
    given = {"seed": seed, "pool": None if pool is None else str(resolved(pool))}
    config = config.model_copy(update={name: value for name, value in given.items() if value is not None})
    config = with_attacks(config, attacks) if attacks else config
    config = config if shadows is None else with_shadows(config, shadows)
    config = config if nodes is None else with_nodes(config, nodes)
    config = config if minutes is None else with_minutes(config, minutes)
    compute = chosen_compute(workers=workers, cluster=cluster, gpus=gpus)
    if isinstance(compute, RayCluster):
        compute.check()
    if config.is_graph:
        importlib.import_module("glasshouse.graph.audit")  # now, so that loading does not count as computing
    keep_code_private()  # before a factory of the user's own has anything compiled
    computing = time.perf_counter()
    with interruptible(out):
        try:
            result = run_audit_file(
                config,
                folder=file.parent if file else Path.cwd(),
                compute=compute,
                progress=False if quiet or as_json else None,
                trust_code=trust_code,
                bounded=True,
            )
        except InputError as error:
            raise error if file is None else InputError(*[_placed(fault, file) for fault in error.faults]) from error
    finish(
        result,
        out=out,
        overwrite=overwrite,
        as_json=as_json,
        seconds=time.perf_counter() - started,
        loading=computing - started,
        policy=None if policy is None else read_policy(policy),
        key=key_file(redact=redact, key=key, out=out),
        author=author,
    )
    if file is None and not as_json:
        typer.echo(_NEXT)


def _placed(fault: str, file: Path) -> str:
    """A fault under the name of the audit file, unless it already names a file."""
    return (
        fault if fault.startswith(str(file)) or ": " not in fault or "/" in fault.split(":")[0] else f"{file}: {fault}"
    )


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
    policy: PolicyFile = None,
    author: Author = None,
    redact: Redact = False,
    key: KeyFile = None,
    overwrite: Overwrite = False,
    shared: Shared = False,
    memory: Memory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack from saved evidence alone: no model, no training."""
    started = time.perf_counter()
    if mode not in ("online", "offline"):
        raise InputError(f'--mode: "{mode}" is not a mode; use online or offline.')
    found = checked(
        lambda: read_evidence(evidence),
        lambda: None if out is None else check_free(out, overwrite=overwrite),
        lambda: None if policy is None else read_policy(policy),
        lambda: key_file(redact=redact, key=key, out=out),
    )
    known: Mode = "online" if mode == "online" else "offline"
    with interruptible(out):
        result = audit_evidence(
            found.evidence,
            members=found.members,
            attacks=attacks or DEFAULT_ATTACKS,
            mode=known,
            fprs=fprs or None,
            prior=prior,
            claim=None if epsilon is None else PrivacyClaim(epsilon=epsilon, delta=delta),
            seed=seed,
            title=f"Membership audit of {visible(evidence.name)}",
            progress=False if quiet or as_json else None,
        )
    finish(
        result,
        out=out,
        overwrite=overwrite,
        as_json=as_json,
        seconds=time.perf_counter() - started,
        policy=None if policy is None else read_policy(policy),
        key=key_file(redact=redact, key=key, out=out),
        author=author,
    )
