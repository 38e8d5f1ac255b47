"""How many of the paper's cells were run, and how many agree, from ``results/`` and the paper's printed cells."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from glasshouse import InputError
from glasshouse_experiments.authors import MARK
from glasshouse_experiments.causes import cause_of
from glasshouse_experiments.cells import paper_rows

__all__ = ["ONE_CYCLE", "Count", "can_be_run", "counted", "counts_table", "run_cells"]

TREE = Path(__file__).resolve().parents[2]
_NAMES = {  # the paper's tables, by what they show
    "MIAGNN": "Table 1",
    "iid": "images",
    "accuracy": "accuracy of targets",
    "sampling-strategies": "samplers",
    "vary-M": "more samples",
    "est-threshold": "estimated thresholds",
    "model-distr-shift": "mismatched adversary",
    "thresholds": "thresholds, graphs",
    "thresholds_iid": "thresholds, images",
    "rmia_fixed_beta_graph": "RMIA at a fixed share, graphs",
    "rule_iid": "RMIA at a fixed share, images",
    "wall-clock-time": "wall-clock",
}
_RANKING = "auc", "tpr_at_fpr"
ONE_CYCLE = "-fast"  # ends the names of settings of images that train for one cycle of few epochs
_WITHOUT_FILES = "flickr", "cifar-100"
_HEAD = ("", "cells in the paper", "can be run here", "run", "within 2 sd", "outside, with a cause", "outside, without")


class Count(NamedTuple):
    """How many cells a table has in the paper, can be run, were run, agree, and differ with and without a cause."""

    printed: int
    possible: int
    run: int
    within: int
    explained: int
    unexplained: int


def run_cells(results: Path) -> list[dict[str, Any]]:
    """Every row of our results that has a cell of the paper beside it, each cell once, with the file it is from.

    Our own attacks stand beside the best of the paper's in files of another form, which do not count. Cells that were
    run twice for a reason count once: the verdict of the same cell as the authors' program computes it is the column
    "authors"; for images that of models trained for one cycle is "cycle", where models trained as the paper says exist.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    beside: dict[str, dict[tuple[str, ...], str]] = {"authors": {}, "cycle": {}}
    for path in sorted(results.glob("*/*.csv"), key=lambda path: (path.parent, path.stem)):
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            if row.get("table") in _NAMES and row["verdict"] != "not printed":
                # the machine of a time is not a part of the paper's cell
                setting = "" if row["table"] == "wall-clock-time" else row["setting"].removeprefix(MARK)
                place = (
                    row["table"],
                    row["dataset"].lower(),
                    row["mode"],
                    row["K"],
                    setting,
                    row["attack"],
                    row["metric"],
                )
                if row["setting"] == MARK:
                    beside["authors"][place] = row["verdict"]
                elif path.stem.endswith(ONE_CYCLE) and place in found:
                    beside["cycle"][place] = row["verdict"]
                else:
                    found[place] = row | {"file": path.stem}
    return [row | {name: told.get(place, "") for name, told in beside.items()} for place, row in found.items()]


def counted(printed: Iterable[Mapping[str, Any]], ours: Iterable[Mapping[str, Any]]) -> Count:
    """The counts of some cells of the paper and of our rows beside them.

    Example:
        >>> row = {"table": "MIAGNN", "dataset": "Cora", "mode": "online", "attack": "BASE", "verdict": "above"}
        >>> counted([row, row | {"dataset": "Flickr"}], [row])
        Count(printed=2, possible=1, run=1, within=0, explained=0, unexplained=1)
    """
    rows, cells = list(ours), list(printed)
    outside = [row for row in rows if row["verdict"] != "within 2 sd"]
    known = sum(cause_of(row) is not None for row in outside)
    possible = sum(map(can_be_run, cells))
    return Count(len(cells), possible, len(rows), len(rows) - len(outside), known, len(outside) - known)


def can_be_run(row: Mapping[str, Any]) -> bool:
    """Whether a cell of the paper can be run with the data that we have: Flickr's features and CIFAR-100 are missing.

    Example:
        >>> can_be_run({"dataset": "Flickr"})
        False
    """
    return row["dataset"].lower() not in _WITHOUT_FILES


def counts_table(results: Path) -> str:
    """The table as Markdown: all cells, those of AUC and TPR alone, and then table by table."""
    printed, ours = paper_rows(), run_cells(results)
    unknown = {row["table"] for row in printed} - _NAMES.keys()
    if unknown:
        raise InputError(f"paper.csv: tables without a name in counting.py: {', '.join(sorted(unknown))}.")
    sizes = Counter(row["table"] for row in printed)
    groups: dict[str, Callable[[Mapping[str, Any]], bool]] = {
        "**all**": lambda _: True,
        "**AUC, and TPR at a fixed FPR**": _is_ranking,
        **{_NAMES[table]: partial(_is_of, table) for table in _NAMES if sizes[table]},
    }
    lines = [f"| {' | '.join(_HEAD)} |", "|" + " --- |" * len(_HEAD)]
    for name, belongs in groups.items():
        count = counted(filter(belongs, printed), filter(belongs, ours))
        lines.append(f"| {name} | {' | '.join(str(number) for number in count)} |")
    return "\n".join(lines)


def _is_of(table: str, row: Mapping[str, Any]) -> bool:
    return bool(row["table"] == table)


def _is_ranking(row: Mapping[str, Any]) -> bool:
    """Whether a cell measures how well an attack ranks."""
    return str(row["metric"]).startswith(_RANKING)
