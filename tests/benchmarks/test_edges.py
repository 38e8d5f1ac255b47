"""A small version of ``benchmarks/graphs/edges.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.scripts import benchmark


def test_every_attack_has_a_row_and_a_signal_costs_less_than_two_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges, out = benchmark("edges"), tmp_path / "edges.md"
    small = {"nodes": 300, "edges": 30, "shadows": 4, "targets": 1, "hidden": 8, "epochs": 3}
    options = [part for name, value in small.items() for part in (f"--{name}", str(value))]
    edges.main(["--graphs", "citation", "--kinds", "held out", *options, "--out", str(out)])
    page = out.read_text(encoding="utf-8")
    assert page in capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert {row[0] for row in rows} >= set(edges.attacks_of(8))
    ratios = [float(row[3]) for row in rows if row[0].startswith("citation, ")]
    assert len(ratios) == 3
    assert min(ratios) > 1
