"""Our strongest attack beside the best of the paper's, one row per data set and pool, as a picture."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from glasshouse.core.table import Table
from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import Axis, Frame, element, picture
from glasshouse_experiments.rivals import STRONGEST

__all__ = ["rivals_picture"]

_METRIC, _CHANCE = "tpr_at_fpr1_pct", 0.01
_WIDTH, _ROW, _TOP, _BOTTOM, _LEFT = 760.0, 26.0, 40.0, 46.0, 190.0
_RADIUS = 4.5
_MARKS = {  # columns of mean and spread, and the class of the mark
    "ours": ("mean", "std", "s0"),
    "the paper's best, same targets": ("rival_mean", "rival_std", "s1"),
    "its best printed": ("paper_mean", "paper_std", "s5"),
}


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
