from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from glasshouse_experiments.cells import Cell
from glasshouse_experiments.rivals import against_rivals, rivals_picture
from glasshouse_experiments.runner import reproduce

ROOT = Path(__file__).parents[2]


def cell(dataset: str, attack: str, *values: float) -> Cell:
    return Cell("beyond-mismatch", dataset, "online", "8", "", attack, "tpr_at_fpr1_pct", values)


def test_a_mark_stands_where_its_mean_is_and_a_larger_mean_further_right() -> None:
    cells = [cell("Cora", "g-stacked", 40.0, 44.0), cell("Cora", "BASE", 10.0, 12.0), cell("<b>", "g-stacked", 2.0)]
    drawn = rivals_picture(against_rivals(cells))
    ElementTree.fromstring(drawn)  # noqa: S314 (our own)
    assert "&lt;b&gt;, online" in drawn
    assert "nan" not in drawn
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)" cy="[\d.]+" r="4.5" class="dot s[01]"', drawn)[2:]]
    ours, rival, alone = places
    assert alone < rival < ours


def test_the_manual_shows_the_picture_of_the_kept_results(tmp_path: Path) -> None:
    kept = ROOT / "results" / "beyond"
    (tmp_path / "beyond").mkdir()
    for path in kept.iterdir():
        (tmp_path / "beyond" / path.name).write_bytes(path.read_bytes())
    reproduce("beyond", preset="paper", datasets=["cora"], out=tmp_path, pools=tmp_path / "none", progress=False)
    drawn = (tmp_path / "beyond.svg").read_bytes()
    assert (
        drawn
        == (ROOT / "results" / "beyond.svg").read_bytes()
        == (ROOT / "docs" / "images" / "beyond.svg").read_bytes()
    )
    assert (tmp_path / "beyond.csv").read_bytes() == (ROOT / "results" / "beyond.csv").read_bytes()
