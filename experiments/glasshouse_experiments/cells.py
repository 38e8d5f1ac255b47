"""Our cells beside the paper's: mean and spread over targets, the difference in its standard deviations, a verdict."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from glasshouse.core.table import Table

__all__ = [
    "COLUMNS",
    "Cell",
    "compared",
    "markdown",
    "paper_rows",
    "printed_cell",
    "printed_cells",
    "readable",
    "tally",
]

COLUMNS = ("dataset", "mode", "K", "attack", "metric", "ours (targets)", "paper", "difference in sd", "verdict")

Key = tuple[str, str, str, str, str, str, str]
_LAST_DIGIT = 0.01


class Cell(NamedTuple):
    """A figure of ours, one value per target, under the names of the paper's tables."""

    table: str
    dataset: str
    mode: str
    K: str
    setting: str
    attack: str
    metric: str
    values: tuple[float, ...]


def compared(cells: Iterable[Cell]) -> Table:
    """One row per cell: ours, the paper's, the difference in the paper's standard deviations, and a verdict.

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
    lines = [f"# {title}", "", tally(table), "", *[f"{note}\n" for note in notes]]
    lines += [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    lines += [f"| {' | '.join(row)} |" for row in readable(table)]
    return "\n".join(lines) + "\n"


def readable(table: Table) -> Iterator[tuple[str, ...]]:
    """Its rows as text, under `COLUMNS`."""
    for row in table.rows():
        digits = 4 if row["metric"].startswith("threshold") or row["metric"] == "seconds" else 2
        ours = f"{row['mean']:.{digits}f} ± {row['std']:.{digits}f} ({row['n']})"
        paper = (
            f"{row['paper_mean']:.{digits}f} ± {row['paper_std']:.{digits}f}" if np.isfinite(row["paper_mean"]) else "–"
        )
        apart = f"{row['difference_sd']:+.1f}" if np.isfinite(row["difference_sd"]) else "–"
        attack = " ".join(filter(None, (row["attack"], row["setting"])))
        yield row["dataset"], row["mode"], row["K"], attack, row["metric"], ours, paper, apart, row["verdict"]


def tally(table: Table) -> str:
    """How many cells agree, in a sentence.

    Example:
        >>> tally(compared([Cell("MIAGNN", "Cora", "online", "8", "", "BASE", "auc_pct", (82.0, 83.0))]))
        '1 of 1 cells that the paper prints lie within two of its standard deviations, 0 above, 0 below.'
    """
    verdicts = [row["verdict"] for row in table.rows() if row["verdict"] != "not printed"]
    if not verdicts:
        return "The paper prints none of these cells."
    within, above, below = (verdicts.count(name) for name in ("within 2 sd", "above", "below"))
    return (
        f"{within} of {len(verdicts)} cells that the paper prints lie within two of its standard deviations, "
        f"{above} above, {below} below."
    )


def printed_cells(table: str, dataset: str, mode: str, count: str, metric: str) -> list[tuple[float, float]]:
    """Mean and standard deviation of every attack in a column of the paper.

    Example:
        >>> max(printed_cells("MIAGNN", "Cora", "online", "8", "auc_pct"))
        (82.45, 1.45)
    """
    wanted = (table, dataset.lower(), mode, count, metric)
    return [figures for key, figures in _printed().items() if (*key[:4], key[6]) == wanted]


def printed_cell(
    table: str, dataset: str, mode: str, count: str, setting: str, attack: str, metric: str
) -> tuple[float, float] | None:
    """Mean and standard deviation of one cell of the paper; None if it is not printed.

    Example:
        >>> printed_cell("MIAGNN", "Cora", "online", "8", "", "BASE", "auc_pct")
        (82.45, 1.45)
    """
    return _printed().get(_key((table, dataset, mode, count, setting, attack, metric)))


def _row(cell: Cell, paper: tuple[float, float] | None) -> dict[str, object]:
    mean = float(np.mean(cell.values))
    spread = float(np.std(cell.values, ddof=1)) if len(cell.values) > 1 else float("nan")
    found: dict[str, object] = dict(zip(Cell._fields[:7], cell[:7], strict=True))
    found |= {"mean": mean, "std": spread, "n": len(cell.values)}
    printed, deviation = paper or (float("nan"), float("nan"))
    apart = (mean - printed) / deviation if deviation and np.isfinite(deviation) else float("nan")
    verdict = "not printed" if paper is None else _verdict(mean - printed, deviation)
    return found | {"paper_mean": printed, "paper_std": deviation, "difference_sd": apart, "verdict": verdict}


def _verdict(difference: float, deviation: float) -> str:
    # a spread printed as 0.00 is below half of the last digit
    if abs(difference) <= 2 * max(deviation, _LAST_DIGIT / 2):
        return "within 2 sd"
    return "above" if difference > 0 else "below"


def paper_rows() -> list[dict[str, str]]:
    """Every cell that the paper prints, as text under the names of `Cell` with ``model``, ``mean`` and ``std``.

    Example:
        >>> len(paper_rows()), paper_rows()[0]["attack"]
        (1076, 'MLP (0-hop)')
    """
    text = (files("glasshouse_experiments") / "paper.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@functools.cache
def _printed() -> dict[Key, tuple[float, float]]:
    names = Cell._fields[:7]
    return {
        _key(tuple(row[name] for name in names)): (float(row["mean"]), float(row["std"] or "nan"))
        for row in paper_rows()
    }


def _key(parts: Sequence[str]) -> Key:
    """Names as in the tables, except for upper and lower case (Amazon-Photo, Amazon-photo)."""
    table, dataset, mode, count, setting, attack, metric = parts
    return (table, dataset.lower(), mode, count, setting, attack, metric)
