from __future__ import annotations

import json
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from glasshouse.cli import app
from glasshouse.cli.new import STARTERS, write_starter
from glasshouse.core.errors import InputError


def said(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception or done.output
    return done.output


@pytest.mark.parametrize("kind", STARTERS.names())
def test_what_new_writes_runs_as_it_stands(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the very command that `new` names, but in this process."""
    monkeypatch.chdir(tmp_path)
    told = said("new", kind, "mine").splitlines()
    go, run = told[-1].strip().split(" && ")
    assert go == "cd mine"
    monkeypatch.chdir(tmp_path / "mine")
    program, *arguments = shlex.split(run)
    if program == "python":
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        assert "WARNING" not in said(*arguments, "--quiet")
    figures = next(Path("runs").rglob("metrics.json"))
    found = json.loads(figures.read_text())
    assert found["warnings"] == []
    assert found["attacks"]["base"]["auc"] > 0.55  # it shows a leak, as a first look should
    assert figures.with_name("report.html").is_file()


def test_new_never_replaces_a_file_and_then_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("mine")
    with pytest.raises(InputError, match="people.csv: already exists and is not overwritten"):
        write_starter(STARTERS.find("table"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
    assert (tmp_path / "people.csv").read_text() == "mine"


def test_a_misspelt_kind_is_answered_with_the_nearest(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["new", "totch", str(tmp_path)])
    assert 'Did you mean "torch"?' in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_every_starter_marks_what_is_the_users_own() -> None:
    for name in STARTERS.names():
        assert next(iter(STARTERS.find(name).texts().values())).lower().count("yours") >= 3
