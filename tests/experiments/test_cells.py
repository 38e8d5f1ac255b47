from __future__ import annotations

import numpy as np
import pytest

from glasshouse_experiments.cells import Cell, compared, markdown


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
    assert "| coin | auc_pct | 50.50 ± 0.71 (2) | – | – | not printed |" in markdown(table, "A title", ["A note."])


@pytest.mark.parametrize(("value", "verdict"), [(0.004, "within 2 sd"), (0.5, "above")])
def test_a_spread_printed_as_nought_is_below_its_last_digit(value: float, verdict: str) -> None:
    names = ("rmia_fixed_beta_graph", "Cora", "online", "256", "", "RMIA", "fpr_at_beta0.9_pct")
    assert compared([Cell(*names, (value, value))])["verdict"].tolist() == [verdict]
