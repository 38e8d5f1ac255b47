from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from glasshouse.table import Table
from glasshouse_experiments.cells import Cell, compared, paper_rows
from glasshouse_experiments.kept_results import Kept
from glasshouse_experiments.shared_cells import NAMES_IN_BOTH, share


def test_the_paper_prints_the_same_figures_in_both_tables() -> None:
    def printed(table: str, names: dict[str, str]) -> dict[tuple[str, ...], tuple[str, str]]:
        return {
            (row["dataset"].lower(), row["mode"], row["K"], names[row["attack"]], row["metric"]): (
                row["mean"],
                row["std"],
            )
            for row in paper_rows()
            if row["table"] == table and row["attack"] in names
        }

    first = printed("MIAGNN", NAMES_IN_BOTH)
    second = printed("sampling-strategies", {name: name for name in NAMES_IN_BOTH.values()})
    assert len(first) == 108
    assert first == second


def test_rows_of_table_1_are_copied_where_the_samplers_table_lacks_them(tmp_path: Path) -> None:
    names = [*NAMES_IN_BOTH, "BASE"]
    place = ("Github", "online", "8", "")
    cells = [Cell("MIAGNN", *place, name, "auc_pct", (60.0 + at,)) for at, name in enumerate(names)]
    Kept(tmp_path / "table-1", "github").write(compared(cells), made={"seconds": 3.0, "note": "other features"})
    held = compared([Cell("sampling-strategies", *place, "Gibbs", "auc_pct", (50.0,))])
    Kept(tmp_path / "samplers", "github", "gibbs").write(held, made={"note": ""})
    assert [path.name for path in share(tmp_path)] == ["github.csv"]  # Gibbs has been run
    copied = Kept(tmp_path / "samplers", "github")
    assert [(row["attack"], row["mean"]) for row in copied.rows()] == [("Model-independent", 60.0), ("0-hop MIA", 61.0)]
    again = compared([Cell("sampling-strategies", *place, NAMES_IN_BOTH[cell.attack], *cell[6:]) for cell in cells[:2]])
    assert copied.path.read_text() == Table({key: np.asarray(again[key]) for key in again}).to_csv()
    made = json.loads(copied.path.with_suffix(".json").read_text())
    assert made["taken_from"].startswith("table-1/github.csv")
    assert made["seconds"] == 3.0
    assert share(tmp_path) == []
