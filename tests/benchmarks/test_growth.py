"""A small version of ``benchmarks/scale/growth.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks.scripts import benchmark

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks" / "scale")


def test_an_exponent_is_the_slope_of_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    exponent = benchmark("growth_tables").exponent
    sizes = [10_000, 100_000, 1_000_000]
    assert exponent(sizes, [2e-4 * size for size in sizes]) == pytest.approx(1.0)
    assert exponent(sizes, [1e-9 * size**1.65 for size in sizes]) == pytest.approx(1.65)
    assert exponent(sizes, [5.0, 5.0, 5.0]) == pytest.approx(0.0)
    assert 0.5 < exponent(sizes, [1 + 1e-5 * size for size in sizes]) < 1  # a fixed cost hides some of the growth
    assert exponent(sizes[:1], [1.0]) != exponent(sizes[:1], [1.0])  # of one size nothing can be said


def test_a_case_that_did_not_end_is_a_dash_and_its_limit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    growth = benchmark("growth")
    told = [
        {"case": ["graph", "100", "cpu"], "found": {"edges": 9, "paths": 40, "g-base": 1.0, "peak": 50.0}},
        {"case": ["graph", "200", "cpu"], "found": {"edges": 18, "paths": 160, "g-base": 4.0, "peak": 50.0}},
        {"case": ["graph", "400", "cpu"], "found": {"edges": 36, "paths": 640, "peak": 50.0, "stopped": 30.0}},
        {"case": ["records", "100", "8", "base"], "found": {"base": 0.5, "processor": 0.7, "sort": 0.1, "peak": 9.0}},
    ]
    kept = tmp_path / "kept.jsonl"
    kept.write_text("".join(json.dumps({**one, "machine": "a machine"}) + "\n" for one in told), encoding="utf-8")
    growth.main(["--from", str(kept), "--out", str(tmp_path / "growth.md")])
    text = (tmp_path / "growth.md").read_text(encoding="utf-8")
    assert "| G-BASE | 1.00 s | 4.00 s | – | 2.00 | 2.00 |" in text
    assert "| two-step paths of the masked graph | 40 | 160 | 640 | 2.00 | 2.00 |" in text
    assert "did not end within 30 s" in text
    assert (tmp_path / "growth.svg").read_text(encoding="utf-8").count('class="curve') == 6  # three lines, and a key


def test_records_and_a_graph_are_measured_step_by_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    growth = benchmark("growth")
    assert growth.record_case(300, 4, "base").keys() == {"base", "processor", "sort"}
    told = growth.graph_case(120, "cpu", steps=["base"])  # an attack on records: one on graphs is compiled for seconds
    steps = {"training", "base", "report"}
    assert told.keys() == {"edges", "paths", *steps, *(f"{step} processor" for step in steps)}
    assert all(json.loads(line)["peak"] > 1 for line in capsys.readouterr().out.splitlines())
    made = sys.modules["made_graphs"]
    data = made.hubs(60, degree=4)
    inside = made.np.random.default_rng(0).permutation(60) < 30
    neighbours = [{int(b) for a, b in data.edge_index.T.tolist() if a == node and inside[b]} for node in range(60)]
    edges = sum(len(beside) for node, beside in enumerate(neighbours) if inside[node])
    assert made.two_step_paths(data) == (edges, sum(len(neighbours[b]) for beside in neighbours for b in beside))
