"""A small version of `cases.py`: some hostile cases hold, each has a test, and what is careless is seen."""

from __future__ import annotations

import ast
import functools
import os
import re
import signal
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("torch_geometric")

from cases_acts import act_cases
from cases_files import file_cases
from cases_folders import folder_cases
from cases_kinds import Case, tried
from cases_stored import stored_cases

ROOT = Path(__file__).parents[2]
CASES = {case.name: case for case in (*file_cases(), *stored_cases(), *folder_cases(), *act_cases())}
SOME = [
    "evidence, npz: encrypted",
    "evidence, csv: an empty member",
    "audit file: aliases",
    "run: records.csv: a short row",
    "pool: answers: NaN",
    "--out a dangling link",
    "leftovers of a killed save",
    "a complete pool that is read-only",
    "factory: own:make",
    "\\r in an id of records.csv",
]


@functools.cache
def functions(path: str) -> set[str]:
    return {one.name for one in ast.parse((ROOT / path).read_text()).body if isinstance(one, ast.FunctionDef)}


def test_every_case_has_a_test_that_exists() -> None:
    assert len(CASES) > 180
    for case in CASES.values():
        path, _, name = case.test.partition("::")
        assert not name or re.sub(r"\[.*\]$", "", name, flags=re.DOTALL) in functions(path), case.test
        assert (ROOT / path).exists()


@pytest.mark.parametrize("name", SOME)
def test_a_case_holds_in_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    outcome = tried(CASES[name], tmp_path)
    assert outcome.held, outcome


def careless(what: str) -> str:
    if what == "bomb":
        bytearray(2**32)
    if what == "raw exception":
        raise KeyError(what)
    if what == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    return "a result"


@pytest.mark.parametrize("word", ["bomb", "raw exception", "crash", "accepted"])
def test_what_is_careless_is_seen(word: str, tmp_path: Path) -> None:
    case = Case(part="none", name=word, test="none", make=lambda: None, act=lambda: careless(word))
    outcome = tried(case, tmp_path)
    assert outcome.word == word
    assert not outcome.held
