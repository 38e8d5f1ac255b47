"""Hostile cases that are no file and no folder: code in audit files, clusters, exports, and what is installed."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
import pickle
import re
import socket
import subprocess
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases_kinds import Case, command
from cases_own import FAULTS, must, own_audit
from tests.hostile import files

import glasshouse

__all__ = ["act_cases"]

TREE = Path(glasshouse.__file__).parents[2]


def act_cases() -> Iterator[Case]:
    """All cases that are no file alone."""
    yield from _code()
    yield from _clusters()
    yield from _exports()
    yield from _installed()


def _code() -> Iterator[Case]:
    def unasked() -> None:
        command("audit", "audit.yaml", "--out", "run")
        must(not Path("trained.txt").exists(), "the code of own.py ran")

    test = FAULTS + "test_code_that_an_audit_file_names_is_not_run_unasked"
    yield Case(part="code", name="factory: own:make", test=test, make=own_audit, act=unasked, works=True)

    def pickled() -> None:
        os.environ.pop("GLASSHOUSE_DATA", None)
        with contextlib.suppress(Exception):
            command("audit", "audit.yaml", "--out", "run")
        must(not Path("ran").exists(), "a pickle of the folder data ran")

    test = (
        "tests/config/test_trust.py::test_pickled_graphs_are_read_from_a_folder_that_the_user_named_and_from_no_other"
    )
    yield Case(part="code", name="graph: cora, in ./data", test=test, make=_pickles, act=pickled, works=True)
    yield Case(
        part="code",
        name="SECURITY.md",
        test="tests/docs/test_pages.py",
        make=lambda: None,
        act=lambda: must((TREE / "SECURITY.md").exists(), "there is none"),
        works=True,
    )


class _Runs:
    def __reduce__(self) -> Any:
        return os.mkdir, ("ran",)


def _pickles() -> None:
    Path("audit.yaml").write_text("graph: {name: cora}\n")
    raw = Path("data/planetoid/Cora/raw")
    raw.mkdir(parents=True)
    for name in ("x", "tx", "allx", "y", "ty", "ally", "graph"):
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(_Runs()))
    (raw / "ind.cora.test.index").write_text("0\n")


def _clusters() -> Iterator[Case]:
    test = "tests/compute/test_local.py::test_a_closed_port_is_one_line_before_ray_is_asked_to_join"
    for name, address in (("ray:// and a closed port", "ray://127.0.0.1:1"), ("a closed port", "127.0.0.1:1")):
        yield Case(
            part="clusters",
            name=f"--cluster {name}",
            test=test,
            make=lambda: None,
            act=partial(_cluster, address),
            memory=None,
            seconds=30,
        )
    test = "tests/compute/test_local.py::test_an_address_where_something_else_answers_is_refused_in_one_line"
    yield Case(
        part="clusters", name="--cluster silence", test=test, make=lambda: None, act=_silence, memory=None, seconds=30
    )
    test = (
        "tests/compute/test_local.py::"
        "test_a_killed_workers_tasks_are_run_again_and_there_are_no_more_workers_than_tasks"
    )
    for count in (1, 2):
        yield Case(
            part="clusters",
            name=f"processes for {count} task{'s' * (count > 1)} of 9 workers",
            test=test,
            make=lambda: None,
            act=partial(_workers, count),
            works=True,
            memory=None,
            seconds=150,  # starting a worker takes seconds
        )

    def client() -> None:
        project = tomllib.loads((TREE / "pyproject.toml").read_text())
        must("client" in str(project["project"]["optional-dependencies"]["cluster"]), "the extra lacks ray[client]")

    test = "tests/compute/test_ray.py::test_a_pool_completes_although_a_node_is_lost"
    yield Case(part="clusters", name="ray:// with the extra", test=test, make=lambda: None, act=client, works=True)


def _cluster(address: str) -> str:
    from glasshouse.compute import RayCluster

    return str(list(RayCluster(address=address).run(_slow, (), [0])))


def _silence() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return _cluster(f"ray://127.0.0.1:{listening.getsockname()[1]}")


def _slow(task: int) -> int:
    time.sleep(1.0)
    return task


def _started() -> int:
    listed = subprocess.run(
        ["ps", "-ww", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    return listed.stdout.count("LokyProcess")


def _workers(count: int) -> None:
    from glasshouse.compute import LocalProcesses

    most = 0
    for _ in LocalProcesses(workers=9).run(_slow, (), list(range(count))):
        most = max(most, _started())
    left = _started()
    must(most <= count and not left, f"{most} processes, and {left} left behind")


def _exports() -> Iterator[Case]:
    test = FAULTS + "test_ids_and_names_of_files_cannot_steer_a_terminal_or_a_spreadsheet"
    for name, look in (
        ("formulas in records.csv", _formulas),
        ("\\r in an id of records.csv", _returns),
        ("escapes on the terminal", _escapes),
    ):
        yield Case(part="exports", name=name, test=test, make=_hostile_ids, act=look, works=True)


def _hostile_ids() -> None:
    from glasshouse import Evidence, write_evidence

    names = ("target_loss", "shadow_loss", "shadow_members")
    evidence = Evidence(**{name: files.EVIDENCE[name] for name in names})
    ids = np.array([f"=cmd|'{i}'!A0\rx\x1b[2J" for i in range(40)])
    write_evidence("e.npz", dataclasses.replace(evidence, ids=ids), members=files.MEMBERS[0])


def _scored() -> Any:
    ran = command("score", "e.npz", "-a", "loss", "--out", "run")
    must(ran.code == 0, ran.err)
    return ran


def _formulas() -> None:
    _scored()
    text = Path("run/records.csv").read_text()
    must(not any(row.lstrip('"').startswith("=") for row in text.splitlines()), "ids begin with =")


def _returns() -> None:
    _scored()
    rows = list(csv.reader(io.StringIO(Path("run/records.csv").read_bytes().decode(), newline="")))
    must(len(rows) == 41, f"{len(rows) - 1} rows of 40 records")


def _escapes() -> None:
    must("\x1b" not in _scored().out, "an id steers the terminal")


def _installed() -> Iterator[Case]:
    pins = TREE / "constraints.txt"

    def complete() -> None:
        text = pins.read_text().lower() if pins.exists() else ""
        lacking = [name for name in ("pillow", "hatchling", "packaging", "pathspec") if f"{name}==" not in text]
        must(not lacking, f"not pinned: {', '.join(lacking)}")

    def hooks() -> None:
        path = TREE / ".pre-commit-config.yaml"
        must(path.exists() and not re.search(r"rev: v", path.read_text()), "hooks by tags, not by commits")
        must((TREE / ".github/dependabot.yml").exists(), "no dependabot.yml")

    test = "tests/project/test_supply_chain.py::"
    for name, act, shown in (
        ("constraints", complete, "test_everything_that_the_project_its_tools_and_its_build_install_is_pinned"),
        (
            "a lock with hashes",
            lambda: must((TREE / "requirements.lock").exists(), "there is none"),
            "test_the_lock_has_the_same_pins_each_with_its_hashes",
        ),
        ("hooks and renewals", hooks, "test_hooks_are_tools_of_the_pinned_environment_and_renewals_are_watched"),
    ):
        yield Case(part="supply chain", name=name, test=test + shown, make=lambda: None, act=act, works=True)
