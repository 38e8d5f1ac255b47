"""From measurements of several sizes to exponents, a table and a picture; used by ``growth.py``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

WIDTH, HEIGHT, KEY = 760.0, 420.0, 190.0
GRAPH_FIGURES = {  # what a case told, its name in the table, and its unit
    "edges": ("edges of the masked graph", "edges"),
    "paths": ("two-step paths of the masked graph", "paths"),
    "training": ("training", "s"),
    "training processor": ("training, processor time", "s"),
    "g-base": ("G-BASE", "s"),
    "g-base processor": ("G-BASE, processor time", "s"),
    "g-stacked": ("g-stacked", "s"),
    "g-stacked processor": ("g-stacked, processor time", "s"),
    "report": ("report", "s"),
    "report processor": ("report, processor time", "s"),
    "peak": ("memory", "MiB"),
}


class Measured(NamedTuple):
    """One case in its own process.

    Args:
        case: ``("graph", nodes, device)`` or ``("records", records, models, attack)``, as text.
        found: seconds by step, ``peak`` memory in MiB, and ``stopped`` with the limit if it did not end.
        machine: a few words about where it ran.
    """

    case: tuple[str, ...]
    found: dict[str, float]
    machine: str = ""

    @property
    def size(self) -> int:
        """Nodes or records."""
        return int(self.case[1])


class Growth(NamedTuple):
    """One figure at several sizes: a row of the table and a line of the picture; None where a case did not end."""

    name: str
    sizes: list[int]
    values: list[float | None]
    unit: str

    @property
    def known(self) -> tuple[list[int], list[float]]:
        """Only the sizes that have a value."""
        pairs = [(size, value) for size, value in zip(self.sizes, self.values, strict=True) if value is not None]
        return [size for size, _ in pairs], [value for _, value in pairs]


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of log value against log size, by least squares: 1 is linear, 2 is quadratic. NaN for one size.

    Example:
        >>> round(exponent([10, 100, 1000], [3, 30, 300]), 6)
        1.0
    """
    if len(sizes) < 2:
        return float("nan")
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def growths(measured: Sequence[Measured]) -> list[Growth]:
    """Every figure at every size, graphs first."""
    found = []
    graphs = sorted((one for one in measured if one.case[0] == "graph"), key=lambda one: one.size)
    if graphs:
        found += [_growth(name, graphs, step, unit) for step, (name, unit) in GRAPH_FIGURES.items()]
        found = [one for one in found if one.known[0]]
    records = [one for one in measured if one.case[0] == "records"]
    for attack in dict.fromkeys(one.case[3] for one in records):
        for models in sorted({int(one.case[2]) for one in records if one.case[3] == attack}):
            some = [one for one in records if one.case[2:] == (str(models), attack)]
            some.sort(key=lambda one: one.size)
            for step, name, unit_of in (
                (attack, "", "s"),
                ("processor", ", processor time", "s"),
                ("peak", ", memory", "MiB"),
            ):
                found.append(_growth(f"{attack} × {models}{name}", some, step, unit_of))
            if attack == "base":
                found.append(_growth(f"one sort × {models}", some, "sort", "s"))
    return found


def _growth(name: str, cases: Sequence[Measured], step: str, unit: str) -> Growth:
    values = [None if step == "peak" and "stopped" in one.found else one.found.get(step) for one in cases]
    return Growth(name, [one.size for one in cases], values, unit)


def _kinds(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Measurements that belong together: graphs of one device, or records."""
    found: dict[str, list[Measured]] = {}
    for one in measured:
        found.setdefault("records" if one.case[0] == "records" else one.case[2], []).append(one)
    return found


def growth_text(measured: Sequence[Measured], *, note: str = "") -> str:
    """The whole page; a note says what a reader must know about this run."""
    parts = [_ABOUT, *([f"{note}\n"] if note else [])]
    for kind, own in _kinds(measured).items():
        rows, title = growths(own), "Records" if kind == "records" else f"Graphs, {_PLACES.get(kind, kind)}"
        machines = "; ".join(dict.fromkeys(one.machine for one in own if one.machine))
        sizes = sorted({one.size for one in own})
        limits = sorted({one.found["stopped"] for one in own if "stopped" in one.found})
        stopped = f" A dash: did not end within {limits[0]:g} s." if limits else ""
        about = f"{machines}.\n\n{_SETTINGS[own[0].case[0]]}" if machines else _SETTINGS[own[0].case[0]]
        parts.append(f"## {title}\n\n{about}{stopped}\n")
        parts.append("| figure | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent | of the last step |")
        parts.append("| --- " * (len(sizes) + 3) + "|")
        for row in rows:
            at = dict(zip(row.sizes, row.values, strict=True))
            cells = [_cell(at.get(size), row.unit) for size in sizes]
            xs, ys = row.known
            parts.append(f"| {row.name} | {' | '.join(cells)} | {_slope(xs, ys)} | {_slope(xs[-2:], ys[-2:])} |")
        parts.append("")
    return "\n".join(parts)


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    return (
        f"{value:,.0f}"
        if unit in ("edges", "paths")
        else f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"
    )


def _slope(xs: Sequence[float], ys: Sequence[float]) -> str:
    return f"{exponent(xs, ys):.2f}" if len(xs) > 1 else ""


def growth_picture(measured: Sequence[Measured]) -> str:
    """Seconds against nodes and records, both logarithmic, as a complete SVG file; a thin line is linear growth."""
    lines = [
        line._replace(name=f"{line.name}, {_PLACES[kind]}" if kind in _PLACES else line.name)
        for kind, own in _kinds(measured).items()
        for line in growths(own)
        if line.unit == "s" and "processor" not in line.name and line.known[0]
    ]
    xs = [size for line in lines for size in line.known[0]]
    ys = [value for line in lines for value in line.known[1]]
    low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)))
    frame = Frame(
        Axis(min(xs) / 1.3, max(xs) * 1.3, log=True),
        Axis(low, high if high > low else 10 * low, log=True),
        WIDTH,
        HEIGHT,
        right=KEY,
    )
    parts = [element("style", Markup(picture_style()))]
    parts += [element("rect", width=WIDTH, height=HEIGHT, style="fill: var(--paper)")]
    parts += frame.grid("nodes, or records × shadow models", "seconds")
    first, last = min(xs), max(xs)
    if last > first:
        foot = low * 3
        top = min(foot * last / first, frame.y.high)
        reach = first * top / foot
        path = f"M{frame.px(first):.1f} {frame.py(foot):.1f}L{frame.px(reach):.1f} {frame.py(top):.1f}"
        parts.append(element("path", d=path, css="chance"))
    for number, line in enumerate(lines):
        css = f"s{number % 6} d{number // 6 % 4}"
        sizes, values = line.known
        places = [(frame.px(size), frame.py(value)) for size, value in zip(sizes, values, strict=True)]
        parts.append(element("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places), css=f"curve {css}"))
        parts += [element("circle", cx=x, cy=y, r=3.0, css=f"dot s{number % 6}") for x, y in places]
        row = frame.top + 14.0 * (number + 1)
        left = WIDTH - KEY + 14
        parts.append(element("path", d=f"M{left:.1f} {row - 4:.1f}h26", css=f"curve {css}"))
        slope = f" ({exponent(sizes, values):.2f})" if len(sizes) > 1 else ""
        parts.append(element("text", f"{line.name}{slope}", x=left + 32, y=row, css="tick"))
    label = "Seconds against the number of nodes or records, with the exponent of each line; dotted: linear growth."
    return str(picture(parts, width=WIDTH, height=HEIGHT, label=label)) + "\n"


_PLACES = {"cpu": "on processors", "cuda": "on a GPU"}
_SETTINGS = {
    "graph": """Two-layer GCN, hidden 16, 50 epochs, 4 shadow models, mean degree 14, 32 features, all nodes audited.
Times are those of the wall clock: of the shadow models' training; of a whole audit by the attack without that (target,
simulated targets, thresholds, all tests); and of writing the report. Memory is the peak of the process up to its end,
or that of the GPU if larger.""",
    "records": """A whole `audit_evidence` by one attack, of made-up losses (`scoring.py`; a target like the shadow
models). Wall clock, processor time of all threads, and the peak of the process. *One sort* is numpy's sort of the same
losses, row by row in one thread: the baseline on the same machine in the same minute.""",
}
_ABOUT = """# Growth

![Seconds against size for each step](growth.svg)

Written by `python benchmarks/scale/growth.py`. Each case runs in its own process. An exponent is the slope of log
figure
against log size over all sizes, and over the last two: fixed costs make the first smaller than what large sizes have.

What the rule itself needs is more than linear. G-BASE toggles every node, and a toggled node changes the answers in its
two-hop neighbourhood. So its work is the sum of two-hop neighbourhoods, the *two-step paths* of the masked graph; with
hubs it grows faster than the edges, and its exponent stands beside. Training, the report and all that is done with
records should have an exponent of 1, a little more where they sort.
"""
