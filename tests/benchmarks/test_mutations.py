"""A small version of benchmarks/robustness/mutations.py, and its list of faults, which must not rot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.scripts import benchmark

mutations = benchmark("mutations")
ROOT = Path(mutations.ROOT)

SUMS = '''def total(first, second):
    """Both together.

    >>> total(1, 2)
    3
    """
    return first + second


def twice(value):
    return 2 * value


def unseen(value):
    return value - 1
'''
FAULTS = """
import sys

import mutations

mutations._IMPORTED = ("pytest",)
mutations.MUTATIONS = tuple(
    mutations.Mutation(name, "sums.py", found, put, "tests/test_sums.py")
    for name, found, put in (
        ("by a test", "2 * value", "3 * value"),
        ("by a doctest", "first + second", "first - second"),
        ("by none", "value - 1", "value"),
        ("gone", "value ** 3", "value"),
        ("twice there", "return", "yield"),
    )
)
sys.exit(mutations.main(sys.argv[1:]))
"""


def test_every_fault_changes_a_piece_that_occurs_once() -> None:
    """Otherwise the benchmark would say "not found": give a piece of the code as it is now."""
    assert {one.name: one.times for one in mutations.MUTATIONS if one.times != 1} == {}
    assert all(one.found != one.put for one in mutations.MUTATIONS)
    assert len({one.name for one in mutations.MUTATIONS}) == len(mutations.MUTATIONS) >= 40


def test_every_fault_names_tests_that_are_there() -> None:
    named = {path.partition("::")[0] for one in mutations.MUTATIONS for path in (one.own + " " + one.room).split()}
    assert {path for path in named if path.startswith("tests") and not (ROOT / path).exists()} == set()


def test_a_fault_is_caught_by_tests_that_pass_without_it_or_is_named(tmp_path: Path) -> None:
    for path, content in {
        "src/glasshouse/__init__.py": "",
        "src/glasshouse/sums.py": SUMS,
        "tests/test_sums.py": "from glasshouse.sums import twice\n\ndef test_twice():\n    assert twice(2) == 4\n",
        "benchmarks/robustness/mutations.py": (ROOT / "benchmarks/robustness/mutations.py").read_text(encoding="utf-8"),
        "run.py": FAULTS,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    places = f"{tmp_path / 'benchmarks/robustness'}{os.pathsep}{tmp_path / 'src'}"
    surroundings = os.environ | {"PYTHONPATH": places}
    command = [sys.executable, "run.py", "--out", "found.md"]
    ended = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True)  # noqa: S603
    assert ended.returncode == 1, ended.stderr
    page = (tmp_path / "found.md").read_text(encoding="utf-8")
    assert "2 of 5 are caught, 1 of them by the module's own" in page
    assert "| by a test | `sums.py` | own tests | `test_sums.py::test_twice` |" in page
    assert "| by a doctest | `sums.py` | doctest | `src/glasshouse/sums.py::glasshouse.sums.total` |" in page
    for name, word in (("by none", "survived"), ("gone", "not found"), ("twice there", "not found")):
        assert f"| {name} | `sums.py` | {word} |  |" in page
    assert (tmp_path / "src/glasshouse/sums.py").read_text(encoding="utf-8") == SUMS


def test_a_test_that_always_fails_catches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src/glasshouse").mkdir(parents=True)
    (tmp_path / "src/glasshouse/sums.py").write_text(SUMS, encoding="utf-8")
    monkeypatch.setattr(mutations, "first_failure", lambda arguments, copy: "tests/test_sums.py::test_twice")
    fault = mutations.Mutation("any", "sums.py", "2 * value", "3 * value", "tests/test_sums.py")
    with pytest.raises(RuntimeError, match="fails without a fault too"):
        mutations.tried(fault, tmp_path, set())
