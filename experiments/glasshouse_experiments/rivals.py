"""Our own attacks against the best of the paper's in each column: as printed, and on the same targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from glasshouse.core.table import Table
from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import Axis, Frame, element, picture
from glasshouse_experiments.cells import Cell, compared, printed_cells

__all__ = ["OURS", "against_rivals", "rivals_count", "rivals_page", "rivals_picture", "rivals_tally"]

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
# the picture shows the strongest attack, one row per data set and pool
_METRIC, _CHANCE = "tpr_at_fpr1_pct", 0.01
_WIDTH, _ROW, _TOP, _BOTTOM, _LEFT = 760.0, 26.0, 40.0, 46.0, 190.0
_RADIUS = 4.5
_MARKS = {  # columns of mean and spread, and the class of the mark
    "ours": ("mean", "std", "s0"),
    "the paper's best, same targets": ("rival_mean", "rival_std", "s1"),
    "its best printed": ("paper_mean", "paper_std", "s5"),
}


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


def rivals_picture(table: Table) -> str:
    """TPR at 1 % FPR, each with a bar of one standard deviation over targets, as a complete SVG file.

    Args:
        table: from `against_rivals`, for any number of data sets.

    Example:
        >>> from glasshouse_experiments.cells import Cell
        >>> from glasshouse_experiments.rivals import against_rivals
        >>> names = ("beyond", "Cora", "online", "8", "")
        >>> cells = [Cell(*names, one, "tpr_at_fpr1_pct", (40.0, 42.0)) for one in ("g-stacked", "BASE")]
        >>> rivals_picture(against_rivals(cells)).count("<circle")  # two, three in the key, and the printed one
        6
    """
    rows = [row for row in table.rows() if row["attack"] in STRONGEST and row["metric"] == _METRIC]
    height = _TOP + _ROW * len(rows) + _BOTTOM
    frame = Frame(
        Axis(_CHANCE, 0.99, log=True, percent=True),
        Axis(0.0, float(max(len(rows), 1))),
        _WIDTH,
        height,
        left=_LEFT,
        top=_TOP,
        bottom=_BOTTOM,
    )
    parts = [element("style", Markup(picture_style()))]  # noqa: S704 (our own file)
    parts += [element("rect", width=_WIDTH, height=height, style="fill: var(--paper)")]
    parts += frame.grid("TPR at 1 % FPR, mean ± one standard deviation over targets", y_ticks=False)
    parts += _key()
    for number, row in enumerate(rows):
        parts += _drawn(frame, row, frame.py(len(rows) - number - 0.5))
    label = f"TPR at 1 % FPR in {len(rows)} settings: our strongest attack beside the best of the paper's."
    return str(picture(parts, width=_WIDTH, height=height, label=label)) + "\n"


def _drawn(frame: Frame, row: dict[str, Any], y: float) -> list[Markup]:
    name = f"{row['dataset']}, {row['mode']}, K = {row['K']}"
    parts = [element("text", name, x=_LEFT - 10, y=y + 4, text_anchor="end")]
    for place, (mean, spread, css) in enumerate(_MARKS.values()):
        if not math.isfinite(row[mean]):
            continue
        at, aside = row[mean] / 100, y + 5.0 * (place - 1)  # bars would hide each other
        wide = row[spread] / 100 if math.isfinite(row[spread]) else 0.0
        start, end = frame.px(at - wide), frame.px(at + wide)
        parts.append(element("line", x1=start, x2=end, y1=aside, y2=aside, css=f"bar {css}"))
        parts.append(element("circle", cx=frame.px(at), cy=aside, r=_RADIUS, css=f"dot {css}"))
    return parts


def _key() -> list[Markup]:
    parts, x = [], _LEFT
    for text, (_, _, css) in _MARKS.items():
        parts.append(element("circle", cx=x + 5, cy=20.0, r=_RADIUS, css=f"dot {css}"))
        parts.append(element("text", text, x=x + 15, y=24.0))
        x += 35 + 7.0 * len(text)
    return parts
