"""An audit with a trainer of the user's own, and a check of what a command did; shared by the cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cases_files import trusted
from cases_kinds import WrongError, command
from tests.hostile import files

__all__ = ["FAULTS", "audit", "must", "own_audit"]

OWN = """
from glasshouse import InputError

trained = []

def train(population, members, seed):
    if len(trained) == {limit}:
        raise InputError("my data: record 3 has no picture.")
    trained.append(seed)
    open("trained.txt", "a").write("one")
    return lambda x: x[:, :2]

def make():
    return train
"""
FILE = "data: {name: file, path: d.npz}\ntrainer: {kind: python, factory: 'own:make'}\nshadows: 4\nattacks: [loss]\n"
FAULTS = "tests/cli/test_faults.py::"


def must(condition: Any, what: str) -> None:
    """Raise if a command did something else."""
    if not condition:
        raise WrongError(what)


def own_audit(*, limit: int = 100) -> None:
    """An audit file with a trainer of the user's own, which stops after some models."""
    files.npz(Path("d.npz"), files.RECORDS)
    Path("own.py").write_text(OWN.format(limit=limit))
    Path("audit.yaml").write_text(FILE)


def audit(*options: str, file: str = "audit.yaml") -> Any:
    """The audit of `own_audit`, with its code trusted where that can be said."""
    return command("audit", file, *(["--trust-code"] if trusted() else []), *options)
