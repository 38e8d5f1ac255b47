"""Seconds per attack beside the loop over nodes and beside the paper, as a Markdown page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from glasshouse.core.table import Table

__all__ = ["BUSY", "LOOP", "OURS", "Timing", "clock_page", "timings"]

OURS, BUSY, LOOP = "seconds", "processor_seconds", "loop_seconds"
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
