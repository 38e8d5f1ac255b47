from __future__ import annotations

import numpy as np
import pytest

from glasshouse.experiments.cells import Cell, compared, markdown


def cell(values: tuple[float, ...], attack: str = "BASE") -> Cell:
    return Cell("MIAGNN", "Cora", "online", "8", "", attack, "auc_pct", values)


@pytest.mark.parametrize(("values", "verdict"), [((82.0, 83.0), "within 2 sd"), ((90.0,), "above"), ((70.0,), "below")])
def test_a_cell_stands_beside_the_papers_with_a_verdict(values: tuple[float, ...], verdict: str) -> None:
    row = next(compared([cell(values)]).rows())
    assert (row["paper_mean"], row["paper_std"]) == (82.45, 1.45)
    assert row["verdict"] == verdict
    assert row["difference_sd"] == pytest.approx((np.mean(values) - 82.45) / 1.45)


def test_a_cell_that_the_paper_does_not_print_says_so() -> None:
    table = compared([cell((50.0, 51.0), attack="coin")])
    assert table["verdict"].tolist() == ["not printed"]
    assert "| coin | auc_pct | 50.50 ± 0.71 | – | – | not printed |" in markdown(table, "A title", ["A note."])
