"""A small version of ``benchmarks/graphs/private.py``."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.scripts import benchmark


def test_no_claim_is_contradicted_and_privacy_costs_accuracy(tmp_path: Path) -> None:
    out = tmp_path / "private.md"
    small = {"runs": 1, "shadows": 4, "nodes": 100, "epochs": 10}
    options = [part for name, value in small.items() for part in (f"--{name}", str(value))]
    benchmark("private").main(
        ["--graphs", "citation", "--epsilons", "1", "inf", "--attacks", "base", *options, "--out", str(out)]
    )
    page = out.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page if line.startswith("| citation")]
    assert [row[1:3] for row in rows] == [["0", "1"], ["0", "inf"], ["1", "1"], ["1", "inf"]]
    assert all(row[6] == "0 of 1" for row in rows[::2])
    assert float(rows[2][3]) < float(rows[3][3])
