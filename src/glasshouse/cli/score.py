"""``glasshouse score``: attack from saved evidence alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from glasshouse.audit import DEFAULT_ATTACKS, audit_evidence
from glasshouse.cli.app import app
from glasshouse.cli.options import Author, Json, KeyFile, Memory, Overwrite, PolicyFile, Quiet, Redact, Shared
from glasshouse.cli.steps import checked, finish, interruptible, key_file
from glasshouse.config import read_policy
from glasshouse.errors import InputError
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evidence import Mode, read_evidence
from glasshouse.store import check_free
from glasshouse.visible import visible

__all__ = ["score"]


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
