"""Small versions of the benchmarks of large graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.scripts import benchmark


def test_intervals_of_a_sample_hold_the_figures_of_the_whole_graph() -> None:
    """Forty draws, of which 95 % should hold the truth; three standard errors are 10 points."""
    rows = benchmark("sample").measured(1500, 300, draws=40)
    assert [row.figure for row in rows] == ["AUC", "TPR at 5 % FPR", "TPR at 1 % FPR"]
    for row in rows:
        assert row.coverage > 0.85, row
        assert row.width <= row.usual_width + 1e-9
    assert abs(rows[0].bias) < 4


def test_a_large_graph_is_audited_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    million = benchmark("million")
    monkeypatch.setenv("MILLION_LOG", str(tmp_path / "log"))
    for module, name in million.PARTS:  # the benchmark puts clocks there, which must be gone afterwards
        place = million.importlib.import_module(module)
        monkeypatch.setattr(place, name, getattr(place, name))
    sizes = "--nodes 600 --degree 4 --audited 150 --shadows 2 --epochs 2 --hidden 4 --parts 2 --device cpu"
    million.main([*sizes.split(), "--attacks", "base", "--out", str(tmp_path / "page.md")])
    page = (tmp_path / "page.md").read_text()
    assert "| train the shadow models |" in page
    assert "| attack: base |" in page
    assert "estimated from a sample of 150 of 600 nodes" in page
    assert "in 2 random parts" in page
    assert "make the graph" in (tmp_path / "log").read_text()
