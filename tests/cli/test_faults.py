"""What the command line says when it stops, and what it leaves alone."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from glasshouse import write_evidence
from glasshouse.cli import main
from glasshouse.core.registry import Registry
from glasshouse.report import read_run_with_records
from glasshouse_experiments.settings import Preset
from tests.strategies import gaussian_evidence


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def glasshouse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, which is much quicker than one of its own."""

    def run(*arguments: str | Path, folder: Path) -> Done:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["glasshouse", *map(str, arguments)])
        monkeypatch.setattr("glasshouse.core.progress._BEGUN", {})
        sys.modules.pop("own", None)
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Done(stopped.value.code, printed.out, printed.err)

    return run


OWN = """
from glasshouse import InputError

trained = []

def train(population, members, seed):
    if len(trained) == {limit}:
        raise InputError("my data: record 3 has no picture.")
    trained.append(seed)
    with open("trained.txt", "a") as file:
        file.write("one\\n")
    width = len(population.classes)
    return lambda x: x[:, :width]

def make():
    return train
"""
FILE = "data: {name: digits}\ntrainer: {kind: python, factory: 'own:make'}\nshadows: 4\nattacks: [base]\n"


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    made, members = gaussian_evidence(records=400, models=4, shift=2.0, seed=0)
    return write_evidence(tmp_path / "evidence.npz", made, members=members)


def own_audit(folder: Path, *, limit: int) -> None:
    (folder / "own.py").write_text(OWN.format(limit=limit))
    (folder / "audit.yaml").write_text(FILE)


def test_a_strangers_folder_is_never_overwritten(glasshouse: Command, evidence: Path) -> None:
    thesis = evidence.parent / "thesis"
    thesis.mkdir()
    (thesis / "metrics.json").write_text("{}")
    (thesis / "chapter.tex").write_text("years of work")
    done = glasshouse("score", evidence, "--out", "thesis", "--overwrite", folder=evidence.parent)
    assert done.returncode == 2
    assert done.stderr.startswith("thesis: is not a run of Glasshouse")
    assert (thesis / "chapter.tex").read_text() == "years of work"


def test_a_run_is_overwritten_and_a_strangers_file_in_it_is_not(glasshouse: Command, evidence: Path) -> None:
    folder = evidence.parent
    for _ in range(2):
        done = glasshouse("score", evidence, "-a", "base", "--out", "run", "--overwrite", folder=folder)
        assert done.returncode == 0, done.stderr
    (folder / "run" / "notes.txt").write_text("mine")
    done = glasshouse("score", evidence, "-a", "base", "--out", "run", "--overwrite", folder=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("run/notes.txt: is not a file of the run, so the folder is not overwritten")
    assert (folder / "run" / "notes.txt").read_text() == "mine"


def test_a_run_of_an_older_format_is_overwritten_where_it_lists_its_files(glasshouse: Command, evidence: Path) -> None:
    folder = evidence.parent
    assert glasshouse("score", evidence, "-a", "base", "--out", "run", folder=folder).returncode == 0
    path = folder / "run" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    done = glasshouse("score", evidence, "-a", "base", "--out", "run", "--overwrite", folder=folder)
    assert done.returncode == 0, done.stderr


def test_a_page_never_replaces_a_file_that_is_not_a_page(glasshouse: Command, evidence: Path) -> None:
    folder = evidence.parent
    assert glasshouse("score", evidence, "-a", "base", "--out", "run", folder=folder).returncode == 0
    before = evidence.read_bytes()
    done = glasshouse("report", "run", "--out", "evidence.npz", folder=folder)
    assert done.returncode == 2
    assert "evidence.npz: is not a page of Glasshouse" in done.stderr
    assert evidence.read_bytes() == before
    assert glasshouse("report", "run", folder=folder).returncode == 0
    assert glasshouse("report", "run", folder=folder).returncode == 0


def test_a_missing_audit_file_is_said_first_and_a_full_folder_with_it(glasshouse: Command, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    done = glasshouse("audit", "missing.yaml", "--out", "run", folder=tmp_path)
    lines = done.stderr.splitlines()
    assert lines[0] == "missing.yaml: there is no such file."
    assert lines[1].startswith("run: already holds something")
    assert lines[2] == "2 problems, nothing was run."
    empty = glasshouse("audit", "missing.yaml", "--out", "new", folder=tmp_path)
    assert empty.stderr.splitlines()[0].startswith("missing.yaml: there is no such file")
    assert len(empty.stderr.splitlines()) == 2


def test_an_out_that_cannot_be_written_is_refused_before_the_first_model_is_trained(
    glasshouse: Command, tmp_path: Path
) -> None:
    own_audit(tmp_path, limit=100)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    places = {
        "file/run": "cannot be written: Not a directory. Nothing was changed.",
        "/proc/run": "cannot be written: ",
        "link": "is a link to nowhere, which does not exist.",
        ".": "names no folder of its own.",
        str(tmp_path): "is the folder that you are in, or one above.",
    }
    for out, said in places.items():
        done = glasshouse("audit", "audit.yaml", "--trust-code", "--out", out, folder=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"{out}: {said}")
        assert done.stderr.endswith("1 problem, nothing was run.\n")
    assert not (tmp_path / "trained.txt").exists()


def test_a_pool_that_cannot_be_kept_is_refused_before_the_first_model_is_trained(
    glasshouse: Command, tmp_path: Path
) -> None:
    own_audit(tmp_path, limit=100)
    (tmp_path / "file").write_text("")
    done = glasshouse("audit", "audit.yaml", "--trust-code", "--out", "run", "--pool", "file", folder=tmp_path)
    assert done.returncode == 2
    assert "file: a pool cannot be kept there" in done.stderr
    assert done.stderr.endswith("1 problem, nothing was run.\n")
    assert not (tmp_path / "trained.txt").exists()


def test_nothing_was_run_is_said_only_where_nothing_was(glasshouse: Command, tmp_path: Path) -> None:
    own_audit(tmp_path, limit=3)
    done = glasshouse("audit", "audit.yaml", "--trust-code", "--out", "run", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "1 problem; the run was stopped. The target was being trained. Shadow models were being trained; without a "
        "pool they are not kept."
    )
    done = glasshouse("audit", "audit.yaml", "--trust-code", "--out", "run", "--pool", "pool", folder=tmp_path)
    assert done.returncode == 2
    assert "nothing was run" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"1 problem; the run was stopped. Shadow models that were trained are kept in {tmp_path / 'pool'}."
    )
    assert len(list((tmp_path / "pool").glob("model-*.json"))) == 3


def test_kept_is_said_only_of_models_that_are_kept(glasshouse: Command, tmp_path: Path) -> None:
    own_audit(tmp_path, limit=0)
    done = glasshouse("audit", "audit.yaml", "--trust-code", "--out", "run", "--pool", "pool", folder=tmp_path)
    assert done.stderr.splitlines()[-1] == (
        "1 problem; the run was stopped. Shadow models were being trained; none was complete, so none is kept in "
        f"{tmp_path / 'pool'}."
    )


def test_tables_that_could_not_be_made_did_not_stop_the_others(
    glasshouse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path / "data"))
    presets: Registry[Preset] = Registry("a preset")
    presets.add("quick", Preset(targets=1, datasets=("synthetic",), epochs=0.02, most_shadows=8))
    monkeypatch.setattr("glasshouse_experiments.jobs.PRESETS", presets)
    tables = ["roc", "--dataset", "synthetic", "--dataset", "flickr"]
    done = glasshouse("reproduce", *tables, "--out", "results", "--pools", "pools", "--quiet", folder=tmp_path)
    assert done.returncode == 2
    assert "flickr (roc): " in done.stderr
    assert done.stderr.endswith(" problems; everything else is finished and kept.\n")
    assert (tmp_path / "results" / "quick" / "roc" / "synthetic.csv").exists()


def test_code_that_an_audit_file_names_is_not_run_unasked(glasshouse: Command, tmp_path: Path) -> None:
    own_audit(tmp_path, limit=0)
    (tmp_path / "own.py").write_text("raise SystemExit('it was imported')")
    done = glasshouse("audit", "audit.yaml", "--out", "run", folder=tmp_path)
    assert done == Done(
        2,
        "",
        f"audit.yaml: trainer.factory: runs code: own:make, from {tmp_path / 'own.py'}. If you trust it, pass "
        "--trust-code (in Python, trust_code=True).\n1 problem, nothing was run.\n",
    )


def test_a_cluster_that_does_not_answer_is_one_line_before_the_first_model_is_trained(
    glasshouse: Command, tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    own_audit(tmp_path, limit=100)
    options = ("--trust-code", "--out", "run", "--cluster", "ray://127.0.0.1:1")
    done = glasshouse("audit", "audit.yaml", *options, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("cluster: no Ray cluster answers at 'ray://127.0.0.1:1' (Connection refused).")
    assert done.stderr.endswith("1 problem, nothing was run.\n")
    assert not (tmp_path / "trained.txt").exists()


def test_what_is_written_is_the_owners_alone_unless_it_is_shared(glasshouse: Command, tmp_path: Path) -> None:
    folder, before = tmp_path, os.umask(0o022)
    (folder / "people.csv").write_text("a,label\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(260)))
    (folder / "audit.yaml").write_text(
        "data: {name: file, path: people.csv, label: label}\ntrainer: {kind: mlp, hidden: [4], epochs: 1}\n"
        "attacks: [loss]\nshadows: 2\n"
    )
    try:
        for shared, modes in ([], {0o600, 0o700}), (["--shared"], {0o644, 0o755}):
            place = folder / f"place{len(shared)}"
            place.mkdir()
            commands = [
                ["audit", "audit.yaml", "--out", place / "run", "--pool", place / "pool"],
                ["report", place / "run", "--out", place / "page" / "page.html"],
                ["compare", place / "run", place / "run" / ".." / "run", "--out", place / "compare.html"],
            ]
            for command in commands:
                done = glasshouse(*command, *shared, folder=folder)
                assert done.returncode == 0, done.stderr
            assert {stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*")} == modes
    finally:
        os.umask(before)


def test_ids_and_names_of_files_cannot_steer_a_terminal_or_a_spreadsheet(glasshouse: Command, tmp_path: Path) -> None:
    made, members = gaussian_evidence(records=400, models=4, shift=2.0, seed=0)
    ids = [f"=cmd|'{i}'!A0\r\x1b[2J\x9b" for i in range(400)]
    name = os.fsdecode(b"ev\x1b]0;owned\x07-\xff.npz")
    write_evidence(tmp_path / name, dataclasses.replace(made, ids=np.array(ids)), members=members)
    runs = [f"run\x1b[2J{which}" for which in "ab"]
    for run in runs:
        done = glasshouse("score", name, "-a", "base", "--out", run, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not {"\x1b", "\x9b", "\r", "\x07"} & set(done.stdout + done.stderr)
        assert r"=cmd|'" in done.stdout
        assert r"\x1b[2J" in done.stdout
    text = (tmp_path / runs[0] / "records.csv").read_bytes().decode()
    assert len(list(csv.reader(io.StringIO(text, newline="")))) == 401
    assert not any(row.startswith(("=", '"=')) for row in text.splitlines())
    kept = read_run_with_records(tmp_path / runs[0]).records()["id"]
    assert sorted(kept) == sorted(ids)
    for command in (["compare", *runs], ["report", runs[0]], ["report", "no\x1b[2Jsuch"]):
        done = glasshouse(*command, folder=tmp_path)
        assert not {"\x1b", "\x9b", "\r", "\x07"} & set(done.stdout + done.stderr)
        assert done.returncode == (2 if "no" in command[1][:2] else 0), done.stderr


def test_a_user_who_stops_the_run_reads_one_line_and_finds_nothing_half_written(
    glasshouse: Command, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN.format(limit=3).replace("raise InputError(", "raise KeyboardInterrupt("))
    (tmp_path / "audit.yaml").write_text(FILE)
    done = glasshouse("audit", "audit.yaml", "--trust-code", "--out", "run", "--pool", "pool", folder=tmp_path)
    assert done.returncode == 130
    assert done.stderr == (
        f"Stopped. Nothing was written to run. Shadow models that were trained are kept in {tmp_path / 'pool'}.\n"
    )
    assert not (tmp_path / "run").exists()
    assert sorted(path.suffix for path in (tmp_path / "pool").glob("model-*")) == [".json"] * 3 + [".safetensors"] * 3
