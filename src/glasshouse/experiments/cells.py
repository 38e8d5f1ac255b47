"""Our cells beside the paper's: mean and spread over targets, the difference in its standard deviations, a verdict."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from glasshouse.table import Table

__all__ = ["Cell", "compared", "markdown"]

Key = tuple[str, str, str, str, str, str, str]


class Cell(NamedTuple):
    """A figure of ours, one value a target, under the names by which the paper's tables know it."""

    table: str
    dataset: str
    mode: str
    K: str
    setting: str
    attack: str
    metric: str
    values: tuple[float, ...]


def compared(cells: Iterable[Cell]) -> Table:
    """One row a cell: ours, the paper's, the difference in the paper's standard deviations, and a verdict.

    Example:
        >>> cell = Cell("MIAGNN", "Cora", "online", "8", "", "BASE", "auc_pct", (82.0, 83.0))
        >>> row = next(compared([cell]).rows())
        >>> row["paper_mean"], row["verdict"]
        (82.45, 'within 2 sd')
    """
    printed = _printed()
    rows = [_row(cell, printed.get(_key(cell[:7]))) for cell in cells]
    return Table({name: np.array([row[name] for row in rows]) for name in rows[0]}) if rows else Table({})


def markdown(table: Table, title: str, notes: Sequence[str] = ()) -> str:
    """The comparison as a Markdown page."""
    lines = [f"# {title}", "", *[f"{note}\n" for note in notes]]
    lines += ["| dataset | mode | K | attack | metric | ours | paper | difference in sd | verdict |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in table.rows():
        paper = f"{row['paper_mean']:.2f} ± {row['paper_std']:.2f}" if np.isfinite(row["paper_mean"]) else "–"
        apart = f"{row['difference_sd']:+.1f}" if np.isfinite(row["difference_sd"]) else "–"
        names = " | ".join(str(row[name]) for name in ("dataset", "mode", "K", "attack", "metric"))
        lines.append(f"| {names} | {row['mean']:.2f} ± {row['std']:.2f} | {paper} | {apart} | {row['verdict']} |")
    return "\n".join(lines) + "\n"


def _row(cell: Cell, paper: tuple[float, float] | None) -> dict[str, object]:
    mean = float(np.mean(cell.values))
    spread = float(np.std(cell.values, ddof=1)) if len(cell.values) > 1 else float("nan")
    found: dict[str, object] = dict(zip(Cell._fields[:7], cell[:7], strict=True))
    found |= {"mean": mean, "std": spread, "n": len(cell.values)}
    printed, deviation = paper or (float("nan"), float("nan"))
    apart = (mean - printed) / deviation if deviation and np.isfinite(deviation) else float("nan")
    place = "within 2 sd" if abs(apart) <= 2 else "above" if apart > 0 else "below"
    verdict = "not printed" if paper is None else place
    return found | {"paper_mean": printed, "paper_std": deviation, "difference_sd": apart, "verdict": verdict}


def _printed() -> dict[Key, tuple[float, float]]:
    text = (files("glasshouse.experiments") / "paper.csv").read_text(encoding="utf-8")
    names = Cell._fields[:7]
    return {
        _key(tuple(row[name] for name in names)): (float(row["mean"]), float(row["std"] or "nan"))
        for row in csv.DictReader(text.splitlines())
    }


def _key(parts: Sequence[str]) -> Key:
    """Names as the tables write them, but for the letters' case (Amazon-Photo, Amazon-photo)."""
    table, dataset, mode, count, setting, attack, metric = parts
    return (table, dataset.lower(), mode, count, setting, attack, metric)
