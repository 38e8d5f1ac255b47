from __future__ import annotations

import io

import pytest
from rich.console import Console

from glasshouse_experiments import show
from glasshouse_experiments.cells import Cell, compared
from glasshouse_experiments.rivals import against_rivals, rivals_page


def cell(attack: str, *values: float) -> Cell:
    return Cell("beyond", "Cora", "online", "8", "", attack, "auc_pct", values)


# the paper prints 82.45 ± 1.45; the rival here has 84 ± 1.4
@pytest.mark.parametrize(
    ("ours", "verdict"), [(86.0, "above by more than 1 sd"), (84.5, "at least as good"), (83.5, "below")]
)
def test_the_harder_of_the_two_bars_decides(ours: float, verdict: str) -> None:
    table = against_rivals([cell("g-stacked", ours), cell("RMIA", 83.0, 85.0), cell("BASE", 70.0, 71.0)])
    row = next(table.rows())
    assert (row["rival"], row["rival_mean"], row["paper_mean"], row["verdict"]) == ("RMIA", 84.0, 82.45, verdict)


def test_the_page_shows_ours_and_the_csv_all() -> None:
    table = against_rivals([cell("g-stacked", 90.0, 91.0), cell("RMIA", 83.0, 85.0)])
    assert table.height == 2
    page = rivals_page(table, "A title", ["A note."])
    assert "| g-stacked | auc_pct | 90.50 ± 0.71 (2) | 84.00 ± 1.41 RMIA | 82.45 ± 1.45 |" in page
    assert page.count("| Cora |") == 1


def test_what_the_paper_prints_is_a_bar_only_where_its_setting_is_known() -> None:
    ours, rival = (
        cell(name, value)._replace(table="beyond-mismatch") for name, value in [("g-stacked", 80), ("BASE", 70)]
    )
    row = next(against_rivals([ours, rival, rival._replace(values=(70.0, 72.0))]).rows())
    assert row["paper_mean"] != row["paper_mean"]  # not a number
    assert row["verdict"] == "above by more than 1 sd"


def test_the_page_counts_columns_of_the_strongest_attacks() -> None:
    cells = [cell("g-stacked", 90.0, 91.0), cell("bavaria", 60.0, 61.0), cell("RMIA", 83.0, 85.0)]
    page = rivals_page(against_rivals(cells), "A title")
    assert (
        "in each of 1 columns: above by more than one standard deviation in 1, at least as good in 0, below in 0"
        in page
    )
    assert page.count("against the best") == 1


def test_a_terminal_counts_against_rivals_where_ours_stand_and_against_the_paper_elsewhere() -> None:
    told = []
    for found in (against_rivals([cell("g-stacked", 90.0), cell("RMIA", 83.0, 85.0)]), compared([cell("BASE", 82.0)])):
        console = Console(width=200, record=True, quiet=False, file=io.StringIO())
        show(found, title="A title", console=console)
        told.append(console.export_text())
    assert "in each of 1 columns" in told[0]
    assert "lie within" not in told[0]
    assert "paper prints none of these cells" in told[1]
