"""Hostile places and moments: folders, kills, code in audit files, clusters, exports, and what is installed."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
import pickle
import re
import resource
import shutil
import socket
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cases_files import _asked, _pool, trusted
from cases_kinds import Case, WrongError, command
from tests.hostile import files
from tests.store.kills import killed_at

import glasshouse

__all__ = ["act_cases"]

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
FAULTS = "tests/test_cli_faults.py::"
TREE = Path(glasshouse.__file__).parents[2]


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


def act_cases() -> Iterator[Case]:
    """All cases that are no file alone."""
    yield from _places()
    yield from _folders()
    yield from _code()
    yield from _clusters()
    yield from _exports()
    yield from _installed()


def _places() -> Iterator[Case]:
    test = FAULTS + "test_an_out_that_cannot_be_written_is_refused_before_the_first_model_is_trained"
    for name, out in {
        "below a file": "../file/run",
        "where nothing can be written": "/proc/run",
        "a dangling link": "link",
        ".": ".",
        "the working folder": str,
    }.items():

        def make() -> None:
            own_audit()
            Path("file").touch()
            Path("empty").mkdir()
            Path("empty/link").symlink_to("nowhere")
            os.chdir("empty")  # an old tree would refuse a folder with files in it for that reason alone

        def act(out: Any = out) -> None:
            place = str(Path.cwd()) if out is str else str(out)
            ran = audit("--out", place, file="../audit.yaml")
            must(not Path("trained.txt").exists(), f"models were trained first; then: {ran.err}")
            must(ran.code == 2, f"ended with {ran.code}")

        yield Case(part="folders", name=f"--out {name}", test=test, make=make, act=act, works=True)

    def made() -> None:
        files.npz(Path("e.npz"), files.EVIDENCE)
        command("score", "e.npz", "-a", "loss", "--out", "real")
        Path("link").symlink_to("real")

    def link() -> None:
        ran = command("score", "e.npz", "-a", "base", "--out", "link", "--overwrite")
        must(ran.code == 0, ran.err)
        must(Path("link").is_symlink(), "the link was replaced by a folder, and the run that it led to stayed")

    test = "tests/store/test_folders.py::test_a_link_to_a_run_stays_a_link"
    yield Case(part="folders", name="--out a link to a run", test=test, make=made, act=link, works=True)


def _folders() -> Iterator[Case]:
    test = "tests/store/test_kills.py::test_a_save_killed_at_any_call_loses_nothing_and_leaves_nothing[names exchanged]"
    yield Case(
        part="folders",
        name="an overwrite, killed at every call",
        test=test,
        make=_two_runs,
        act=_overwritten,
        works=True,
    )
    test = "tests/store/test_kills.py::test_a_first_save_killed_at_any_call_leaves_a_whole_run_or_none"
    yield Case(part="folders", name="leftovers of a killed save", test=test, make=_two_runs, act=_left, works=True)
    test = (
        "tests/pool/test_folder.py::"
        "test_a_complete_pool_that_cannot_be_written_is_used_and_an_incomplete_one_says_what_is_missing"
    )
    yield Case(
        part="folders",
        name="a complete pool that is read-only",
        test=test,
        make=lambda: _pool("answers").train(progress=False),
        act=_read_only,
        works=True,
    )
    test = FAULTS + "test_nothing_was_run_is_said_only_where_nothing_was"
    yield Case(
        part="folders",
        name="nothing was run: said after two models were",
        test=test,
        make=lambda: own_audit(limit=2),
        act=lambda: must("nothing was run" not in audit("--out", "run").err, "two models were trained"),
        works=True,
    )
    test = FAULTS + "test_kept_is_said_only_of_models_that_are_kept"
    yield Case(
        part="folders", name="kept: said of what was not", test=test, make=own_audit, act=_kept, works=True, seconds=90
    )
    test = FAULTS + "test_what_is_written_is_the_owners_alone_unless_it_is_shared"
    yield Case(part="folders", name="modes of what is written", test=test, make=own_audit, act=_modes, works=True)
    test = "tests/store/test_leftovers.py::test_a_full_disk_leaves_the_earlier_run_and_nothing_else_and_says_so[True]"
    yield Case(part="folders", name="a full disk", test=test, make=_two_runs, act=_full, works=True)


def _two_runs() -> None:
    files.npz(Path("e.npz"), files.EVIDENCE)
    from glasshouse import audit_evidence, read_evidence

    found = read_evidence("e.npz")
    for name in ("run", "other"):
        audit_evidence(found.evidence, members=found.members, attacks=["loss"], progress=False).save(name)


def _save(place: str) -> None:
    """Save a run in the place of an earlier one; its files are made beforehand, so that a kill hits the saving."""
    from glasshouse.store import new_folder

    with new_folder(place, overwrite=True) as folder:
        for path in Path("other").iterdir():
            shutil.copyfile(path, folder / path.name)


def _overwritten() -> str:
    from glasshouse import InputError
    from glasshouse.report import read_run

    step = 0
    while killed_at(step := step + 1, lambda: _save("run")):
        try:
            read_run("run")
        except InputError as error:
            raise WrongError(f"killed at call {step}: {error}") from None
        must(step < 300, "the save never ended")
    return f"{step - 1} kills"


def _left() -> None:
    before = {path.name for path in Path().iterdir()}
    killed_at(6, lambda: _save("run"))
    _save("run")
    left = {path.name for path in Path().iterdir()} - before
    must(not left, f"left: {', '.join(sorted(left))}")


def _read_only() -> str:
    """As a user who may not write; root may write everywhere."""
    for path in (Path.cwd(), *Path.cwd().rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    return _asked("answers")


def _kept() -> None:
    """Worker processes that die five times, without a pool: nothing is kept, and nothing else may be said."""
    from glasshouse import InputError
    from glasshouse.compute import LocalProcesses

    try:
        list(LocalProcesses(workers=2).run(_dies, (), [0, 1]))
    except InputError as error:
        must("kept" not in str(error), str(error))


def _dies(task: int) -> None:
    os._exit(1)


def _modes() -> None:
    os.umask(0o022)
    ran = audit("--out", "run", "--pool", "pool")
    must(ran.code == 0, ran.err)
    written = [Path("run"), Path("pool"), *Path("run").rglob("*"), *Path("pool").rglob("*")]
    modes = {oct(stat.S_IMODE(path.stat().st_mode))[2:] for path in written}
    must(modes <= {"600", "700"}, f"modes {', '.join(sorted(modes))}")


def _full() -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
    ran = command("score", "e.npz", "-a", "loss", "--out", "run", "--overwrite")
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    from glasshouse.report import read_run

    read_run("run")
    must(ran.code == 2 and {path.name for path in Path().iterdir()} == {"e.npz", "run", "other"}, "something is left")
    must("unchanged" in ran.err, f"the earlier run is there, but: {ran.err}")


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
        test="tests/test_docs.py",
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
    test = "tests/test_compute.py::test_a_closed_port_is_one_line_at_once"
    for name, address in (("ray:// and a closed port", "ray://127.0.0.1:1"), ("a closed port", "127.0.0.1:1")):
        yield Case(
            part="clusters",
            name=f"--cluster {name}",
            test=test,
            make=lambda: None,
            act=lambda address=address: _cluster(address),
            memory=None,
            seconds=30,
        )
    test = "tests/test_compute.py::test_an_address_where_something_else_answers_is_refused_in_one_line"
    yield Case(
        part="clusters", name="--cluster silence", test=test, make=lambda: None, act=_silence, memory=None, seconds=30
    )
    test = "tests/test_compute.py::test_a_killed_workers_tasks_are_run_again_and_there_are_no_more_workers_than_tasks"
    for count in (1, 2):
        yield Case(
            part="clusters",
            name=f"processes for {count} task{'s' * (count > 1)} of 9 workers",
            test=test,
            make=lambda: None,
            act=lambda count=count: _workers(count),
            works=True,
            memory=None,
            seconds=30,
        )

    def client() -> None:
        project = tomllib.loads((TREE / "pyproject.toml").read_text())
        must("client" in str(project["project"]["optional-dependencies"]["cluster"]), "the extra lacks ray[client]")

    test = "tests/test_compute.py::test_a_pool_completes_although_a_node_is_lost"
    yield Case(part="clusters", name="ray:// with the extra", test=test, make=lambda: None, act=client, works=True)


def _cluster(address: str) -> str:
    from glasshouse.compute import RayCluster

    return str(list(RayCluster(address=address).run(_dies, (), [0])))


def _silence() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return _cluster(f"ray://127.0.0.1:{listening.getsockname()[1]}")


def _slow(task: int) -> int:
    import time

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

    test = "tests/test_supply_chain.py::"
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
