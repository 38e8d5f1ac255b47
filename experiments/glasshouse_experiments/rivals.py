"""Our own attacks against the best of the paper's in each column: as printed, and on the same targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from glasshouse.core.table import Table
from glasshouse_experiments.cells import Cell, compared, printed_cells

__all__ = ["OURS", "against_rivals", "rivals_count", "rivals_page", "rivals_tally"]

# what is not in the paper; everything else is a rival
STRONGEST = ("stacked", "g-stacked")
OURS = ("regressed", "bavaria", "shrunk-lira", "g-regressed", *STRONGEST)
# if all hyper-parameters are the paper's, its printed figures are compared too
_PRINTED = {"beyond": "MIAGNN"}
_COLUMNS = (
    "dataset",
    "mode",
    "K",
    "attack",
    "metric",
    "ours (targets)",
    "best of the paper's attacks, same targets",
    "its best printed",
    "verdict",
)
_VERDICTS = ("above by more than 1 sd", "at least as good", "below")
_HIGHER = ("auc_pct", "tpr_at_fpr1_pct", "tpr_at_fpr0.1_pct")


def against_rivals(cells: Iterable[Cell]) -> Table:
    """One row per cell: our mean, the best rival's mean on the same targets, the best printed one, and a verdict.

    The differences are in standard deviations over targets: of the printed cell, and of the rival's own.

    Example:
        >>> names = ("beyond", "Cora", "online", "8", "")
        >>> ours = Cell(*names, "g-stacked", "auc_pct", (89.0, 89.5))
        >>> rival = Cell(*names, "BASE", "auc_pct", (82.0, 83.0))
        >>> row = next(against_rivals([ours, rival]).rows())
        >>> row["rival"], row["paper_mean"], row["verdict"]
        ('BASE', 82.45, 'above by more than 1 sd')
    """
    found = list(cells)
    table = compared(found)
    rows = list(table.rows())
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        column = _column(row)
        if row["attack"] not in OURS and (column not in best or row["mean"] > best[column]["mean"]):
            best[column] = row
    told = [_judged(row, best.get(_column(row))) for row in rows]
    return Table({name: np.array([row[name] for row in told]) for name in told[0]})


def rivals_page(table: Table, title: str, notes: Sequence[str] = ()) -> str:
    """The table as Markdown, our attacks only; the rivals' own rows stay in the CSV."""
    ours = [row for row in table.rows() if row["attack"] in OURS]
    lines = [f"# {title}", "", *[f"{said}\n" for said in (*rivals_tally(table), *notes)]]
    lines += [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    for row in ours:
        rival = f"{row['rival_mean']:.2f} ± {row['rival_std']:.2f} {row['rival']}" if row["rival"] else "–"
        printed = f"{row['paper_mean']:.2f} ± {row['paper_std']:.2f}" if np.isfinite(row["paper_mean"]) else "–"
        names = " | ".join(row[name] for name in ("dataset", "mode", "K", "attack", "metric"))
        mean = f"{row['mean']:.2f} ± {row['std']:.2f} ({row['n']})"
        lines.append(f"| {names} | {mean} | {rival} | {printed} | {row['verdict']} |")
    return "\n".join(lines) + "\n"


def rivals_tally(table: Table) -> list[str]:
    """How often our strongest attacks are above all rivals, one sentence per attack.

    Example:
        >>> names = ("beyond", "Cora", "online", "8", "")
        >>> cells = [Cell(*names, "g-stacked", "auc_pct", (89.0, 89.5)), Cell(*names, "BASE", "auc_pct", (82.0, 83.0))]
        >>> rivals_tally(against_rivals(cells))[0].split(":")[0]
        "`g-stacked` against the best of the paper's attacks in each of 1 columns"
    """
    said = []
    for attack in STRONGEST:
        above, level, below = rivals_count(table.rows(), attack)
        if above + level + below:
            said.append(
                f"`{attack}` against the best of the paper's attacks in each of {above + level + below} columns: above "
                f"by more than one standard deviation in {above}, at least as good in {level}, below in {below}."
            )
    return said


def rivals_count(rows: Iterable[Mapping[str, Any]], attack: str) -> tuple[int, int, int]:
    """In how many columns an attack is above the best rival, at least as good, and below."""
    found = [row["verdict"] for row in rows if row["attack"] == attack]
    above, level, below = (found.count(name) for name in _VERDICTS)
    return above, level, below


def _column(row: dict[str, Any]) -> tuple[str, ...]:
    return row["dataset"], row["mode"], row["K"], row["metric"]


def _judged(row: dict[str, Any], rival: dict[str, Any] | None) -> dict[str, Any]:
    paper = printed_cells(_PRINTED.get(row["table"], ""), row["dataset"], row["mode"], row["K"], row["metric"])
    mean, std = max(paper, default=(float("nan"), float("nan")))
    extra = {
        "rival": rival["attack"] if rival else "",
        "rival_mean": rival["mean"] if rival else float("nan"),
        "rival_std": rival["std"] if rival else float("nan"),
    }
    bars = [(mean, std), (extra["rival_mean"], extra["rival_std"])]
    apart = [(row["mean"] - bar) / spread if spread else float("nan") for bar, spread in bars if np.isfinite(bar)]
    changed = {
        "paper_mean": mean,
        "paper_std": std,
        "difference_sd": min(apart, default=float("nan")),
        "verdict": _verdict(row, min(apart, default=float("nan"))),
    }
    return row | changed | extra


def _verdict(row: dict[str, Any], apart: float) -> str:
    """Against the better of the two rivals."""
    if row["attack"] not in OURS or row["metric"] not in _HIGHER or not np.isfinite(apart):
        return "for comparison"
    return _VERDICTS[0 if apart > 1 else 1 if apart >= 0 else 2]
