"""Seconds per attack beside the loop over nodes and beside the paper, as a Markdown page and as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from glasshouse.core.table import Table
from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["BUSY", "LOOP", "OURS", "Timing", "clock_page", "clock_picture", "timings"]

OURS, BUSY, LOOP = "seconds", "processor_seconds", "loop_seconds"
_WIDTH, _ROW, _TOP, _BOTTOM, _LEFT, _RADIUS = 760.0, 20.0, 40.0, 46.0, 330.0, 4.5
_MARKS = {"ours": ("ours", "s0"), "loop over nodes, same machine": ("loop", "s1"), "the paper": ("paper", "s5")}
_COLUMNS = (
    "data set",
    "attack",
    "mode",
    "K",
    "machine",
    "ours, s",
    "ours, processor s",
    "loop over nodes, s",
    "times faster",
    "paper, s",
    "times faster",
)
_ABOUT = (
    "Every attack on one target, once the models are trained and, for BASE, RMIA and LiRA, asked. The loop over nodes "
    "does the work as the paper's program does, one ego-net after the other, in the same run on the same machine; "
    "it is measured on a few nodes and multiplied by their number. Processor seconds are those of all cores together; "
    "other programs on the machine hardly change them. The paper does not name its machine."
)


class Timing(NamedTuple):
    """Seconds of one attack on one machine; NaN where there are none."""

    dataset: str
    attack: str
    mode: str
    K: str
    machine: str
    ours: float
    loop: float
    paper: float
    busy: float = math.nan


def timings(table: Table) -> Iterator[Timing]:
    """One for each attack, data set and machine of a table with rows of `OURS` and `LOOP`.

    Example:
        >>> names = {"dataset": "Cora", "attack": "BASE", "mode": "online", "K": "8", "setting": "one GPU"}
        >>> row = names | {"metric": OURS, "mean": 0.1, "paper_mean": 0.2}
        >>> next(timings(Table({key: [value] for key, value in row.items()})))[4:]
        ('one GPU', 0.1, nan, 0.2, nan)
    """
    rows = list(table.rows())
    names = ("dataset", "attack", "mode", "K", "setting")
    loops, busy = (
        {tuple(row[name] for name in names): row["mean"] for row in rows if row["metric"] == metric}
        for metric in (LOOP, BUSY)
    )
    for row in rows:
        if row["metric"] == OURS:
            dataset, attack, mode, count, machine = key = tuple(row[name] for name in names)
            seconds = (row["mean"], loops.get(key, math.nan), row["paper_mean"], busy.get(key, math.nan))
            yield Timing(dataset, attack, mode, count, machine, *seconds)


def clock_page(table: Table, title: str, notes: Sequence[str] = ()) -> str:
    """As Markdown, one row per attack and machine."""
    lines = [f"# {title}", "", _ABOUT, "", *[f"{note}\n" for note in notes]]
    lines += [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    for one in timings(table):
        told = (_told(one.ours), _told(one.busy), _told(one.loop), _times(one.loop, one.ours), _told(one.paper))
        lines.append(f"| {' | '.join((*one[:5], *told, _times(one.paper, one.ours)))} |")
    return "\n".join(lines) + "\n"


def _told(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.2g}"


def _times(slow: float, fast: float) -> str:
    return "–" if math.isnan(slow) else f"{slow / fast:.2g}" if slow < 100 * fast else f"{slow / fast:.0f}"


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
