"""Pictures of people: how many of 1 000 an attacker identifies, the leak per group, and the risk of each unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from markupsafe import Markup

from glasshouse.evaluation import Interval
from glasshouse.evaluation.groups import GroupLeak
from glasshouse.evaluation.risk import RiskFigures
from glasshouse.report.decision.first_page import Exposure
from glasshouse.report.figures import group_estimate
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

_CROWD, _ROW = 1000, 50
_WIDE, _HIGH = 10.0, 13.0
_PERSON = "M5 1.2a2.1 2.1 0 1 1 0 4.2a2.1 2.1 0 1 1 0-4.2zM1.6 11.6V9.2a3.4 3.2 0 0 1 6.8 0v2.4z"
_DOT = "M5 3.4a3.1 3.1 0 1 1 0 6.2a3.1 3.1 0 1 1 0-6.2z"


def people_picture(
    found: float, *, high: float | None = None, label: str, name: str, people: bool = True, leak: bool = True
) -> Markup:
    """1 000 figures in rows: first the flagged share ``found``, then up to its interval's end ``high``, then the rest.

    ``name`` is a word of its own in the page. What is not ``people`` is drawn as dots; all is grey without a ``leak``.
    """
    first = _cells(found)
    second = max(first, _cells(found if high is None else high))
    shape = _PERSON if people else _DOT
    parts = []
    for kind, start, stop in (("found", 0, first), ("maybe", first, second), ("rest", second, _CROWD)):
        key = f"{name}-{kind}"
        cell = {"width": _WIDE, "height": _HIGH, "patternUnits": "userSpaceOnUse"}
        css = f"one {kind}" if leak else f"one {kind} null"
        parts.append(element("pattern", element("path", d=shape, css=css), id=key, **cell))
        if stop > start:
            parts.append(element("path", d=_region(start, stop), css=f"crowd {kind}", fill=f"url(#{key})"))
    width, height = _WIDE * _ROW, _HIGH * _CROWD / _ROW
    return picture(parts, width=width, height=height, label=label, css="plot people")


def exposure_picture(exposure: Exposure | None, *, name: str, members: bool = True) -> Markup | None:
    """The members of an exposure, or its non-members; None if nothing was counted."""
    if exposure is None:
        return None
    per, found, high = exposure.per, exposure.found if members else exposure.wrong, None
    if not members:
        told = "non-members are wrongly flagged."
    elif not exposure.leak:
        told = "members are flagged, no better than guessing."
    else:
        told, high = f"members are identified; with the interval, up to {exposure.high:.0f}.", exposure.high / per
    shown: Any = {"name": name, "people": exposure.unit in ("records", "persons"), "leak": exposure.leak}
    return people_picture(found / per, high=high, label=f"{found:.0f} of {per} {told}", **shown)


def _cells(share: float) -> int:
    """Figures for a share; one that was found is always seen."""
    return min(_CROWD, max(round(_CROWD * share), 1 if share > 0 else 0))


def _region(start: int, stop: int) -> str:
    """The outline of the cells from ``start`` to ``stop``, row by row: at most three rectangles."""
    path, at = "", start
    while at < stop:
        row, column = divmod(at, _ROW)
        if column or stop - at < _ROW:
            wide, rows = min(stop - at, _ROW - column), 1
        else:
            wide, rows = _ROW, (stop - at) // _ROW
        path += f"M{column * _WIDE:g} {row * _HIGH:g}h{wide * _WIDE:g}v{rows * _HIGH:g}h{-wide * _WIDE:g}z"
        at += wide * rows
    return path


_GROUP_ROW, _LETTERS, _HEADING = 19.0, 20, 60


def groups_picture(
    groups: Sequence[GroupLeak],
    *,
    overall: float | None,
    figure: Literal["auc", "tpr"] = "auc",
    name: str = "AUC within the group",
    leak: bool = True,
) -> Markup:
    """A figure of each group that is large enough, one row each; groups that differ significantly have another colour.

    It is the area within the group, beside the ``overall`` one; or, as two dots, how many of 1 000 members (filled)
    and non-members (hollow) are flagged. Without a ``leak`` all is grey.
    """
    scale = 1.0 if figure == "auc" else 1000.0
    drawn = []
    for one in groups:
        found = group_estimate(one, figure)
        if found is not None and found.interval is not None:
            drawn.append((one, scale * found.value, Interval(*(scale * end for end in found.interval))))
    axis = _axis([interval for _, _, interval in drawn], figure)
    height = _GROUP_ROW * (len(drawn) + len({one.column for one, *_ in drawn if one.column})) + 66
    frame = Frame(axis, Axis(0.0, 1.0), width=440.0, height=height, left=178.0)
    parts = frame.grid(name, y_ticks=False)
    if figure == "auc":
        parts.append(frame.upright(frame.px(0.5), "chance"))
    if overall is not None:
        parts.append(frame.upright(frame.px(scale * overall), "cut"))
    y, column = frame.top, ""
    for one, value, interval in drawn:
        if one.column != column:
            y, column = y + _GROUP_ROW, one.column
            parts.append(element("text", _short(column, _HEADING), x=8.0, y=y + 4, css="name"))
        y += _GROUP_ROW
        css = "s1" if one.singled_out else "s0" if leak else "s5"
        left, right = frame.px(interval.low), frame.px(interval.high)
        parts.append(element("text", _short(one.group), x=frame.left - 8, y=y + 4, css="key", text_anchor="end"))
        parts.append(element("line", x1=left, x2=right, y1=y, y2=y, css=f"bar {css}"))
        if figure == "tpr" and one.fpr is not None:  # a little higher, so that equal dots do not hide each other
            parts.append(element("circle", cx=frame.px(scale * one.fpr), cy=y - 5, r=3.5, css=f"hollow {css}"))
        parts.append(element("circle", cx=frame.px(value), cy=y, r=4, css=f"dot {css}"))
    whole = "" if overall is None else f"; over all records it is {scale * overall:.4g}"
    label = f"{name}, with interval, of {len(drawn)} groups{whole}."
    return frame.picture(parts, label=label, css="plot groups")


def _axis(intervals: Sequence[Interval], figure: Literal["auc", "tpr"]) -> Axis:
    lows, highs = [one.low for one in intervals], [one.high for one in intervals]
    if figure == "tpr":
        return Axis(0.0, min(1000.0, 1.05 * max([20.0, *highs])))
    return Axis(max(0.0, min([0.48, *lows]) - 0.01), min(1.0, max([0.6, *highs]) + 0.01))


def _short(text: str, most: int = _LETTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def risk_picture(risk: RiskFigures, *, unit: str) -> Markup:
    """Bars: units by the share of their simulated targets that identify them; lines: an equal risk, and guessing."""
    bins, most = len(risk.observed), max(*risk.observed, *risk.alike, 1.0)
    frame = Frame(Axis(0.0, 1.0, percent=True), Axis(0.0, 1.05 * most), width=440.0, height=250.0)
    parts = frame.grid("simulated targets that identify it", f"{unit}s")
    edges = [place / bins for place in range(bins + 1)]
    for left, right, count in zip(edges[:-1], edges[1:], risk.observed, strict=True):
        x, y = frame.px(left), frame.py(count)
        parts.append(
            element("rect", x=x + 1, y=y, width=frame.px(right) - x - 2, height=frame.floor - y, css="hist member")
        )
    for counts, css in ((risk.alike, "curve s1 d1"), (risk.guessed, "curve s5 d3")):
        found = frame.steps([*edges], [*[min(count, most) for count in counts], min(counts[-1], most)])
        parts.append(element("path", d=found, css=css))
    return frame.picture(parts, label=risk.sentence(unit))
