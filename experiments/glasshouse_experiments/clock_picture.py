"""Seconds per attack beside the loop over nodes and beside the paper, as a picture."""

from __future__ import annotations

import math

from markupsafe import Markup

from glasshouse.core.table import Table
from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import Axis, Frame, element, picture
from glasshouse_experiments.clock_page import Timing, timings

__all__ = ["clock_picture"]

_WIDTH, _ROW, _TOP, _BOTTOM, _LEFT, _RADIUS = 760.0, 20.0, 40.0, 46.0, 330.0, 4.5
_MARKS = {"ours": ("ours", "s0"), "loop over nodes, same machine": ("loop", "s1"), "the paper": ("paper", "s5")}


def clock_picture(table: Table) -> str:
    """Seconds on a logarithmic axis, one row per attack and machine, as a complete SVG file.

    Args:
        table: of `wall-clock`, for any number of data sets and machines.

    Example:
        >>> names = {"dataset": "Cora", "attack": "BASE", "mode": "online", "K": "8", "setting": "one GPU"}
        >>> row = names | {"metric": "seconds", "mean": 0.1, "paper_mean": 0.2}
        >>> clock_picture(Table({key: [value] for key, value in row.items()})).count("<circle")  # two, three in the key
        5
    """
    rows = list(timings(table))
    known = [value for row in rows for value in (row.ours, row.loop, row.paper) if math.isfinite(value)]
    low, high = (10.0 ** math.floor(math.log10(min(known))), 10.0 ** math.ceil(math.log10(max(known))))
    height = _TOP + _ROW * len(rows) + _BOTTOM
    axes = (Axis(low, max(high, 10 * low), log=True), Axis(0.0, float(len(rows))))
    frame = Frame(*axes, _WIDTH, height, left=_LEFT, top=_TOP, bottom=_BOTTOM)
    parts = [element("style", Markup(picture_style()))]  # noqa: S704 (our own file)
    parts += [element("rect", width=_WIDTH, height=height, style="fill: var(--paper)")]
    parts += frame.grid("seconds for one target", y_ticks=False)
    parts += _key()
    for number, row in enumerate(rows):
        parts += _drawn(frame, row, frame.py(len(rows) - number - 0.5))
    label = f"Seconds for one target in {len(rows)} cases: ours, the loop over nodes, and the paper's."
    return str(picture(parts, width=_WIDTH, height=height, label=label)) + "\n"


def _drawn(frame: Frame, row: Timing, y: float) -> list[Markup]:
    name = f"{row.dataset}, {row.attack}, {row.mode}, {row.machine}"
    parts = [element("text", name, x=_LEFT - 10, y=y + 4, text_anchor="end")]
    for field, css in _MARKS.values():
        value = getattr(row, field)
        if math.isfinite(value):
            parts.append(element("circle", cx=frame.px(value), cy=y, r=_RADIUS, css=f"dot {css}"))
    return parts


def _key() -> list[Markup]:
    parts, x = [], 10.0
    for text, (_, css) in _MARKS.items():
        parts.append(element("circle", cx=x + 5, cy=20.0, r=_RADIUS, css=f"dot {css}"))
        parts.append(element("text", text, x=x + 15, y=24.0))
        x += 40 + 7.0 * len(text)
    return parts
