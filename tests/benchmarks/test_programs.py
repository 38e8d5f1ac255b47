"""A small version of ``benchmarks/graphs/programs.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.scripts import benchmark


def test_users_modules_are_timed_beside_ours_and_the_table_names_their_engines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "programs.md"
    few = ["--graph", "120", "--masks", "1", "--share", "0.2", "--repeats", "1", "--zoo", "3"]
    benchmark("programs").main([*few, "--out", str(out)])
    lines = out.read_text(encoding="utf-8").splitlines()
    assert capsys.readouterr().out.startswith("Times on ")
    (times,) = [line for line in lines if line.startswith("| ours, yours: 2 x sage")]
    assert float(times.split("|")[-2]) > 0
    (zoo,) = [line for line in lines if line.startswith("| two GCNConv |")]
    cells = [cell.strip() for cell in zoo.strip("|").split("|")]
    assert cells[1:5] == ["2", "layered", "2 incremental", "-"]
    assert float(cells[5]) < 1e-4
