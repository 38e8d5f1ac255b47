"""The leak per group: a dot and its interval for each group, beside the line of all records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from markupsafe import Markup

from glasshouse.evaluation import Interval
from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["groups_picture"]

_WIDTH, _ROW, _LETTERS = 440.0, 19.0, 20


def groups_picture(
    groups: Sequence[GroupLeak],
    *,
    overall: float | None,
    figure: Literal["auc", "tpr"] = "auc",
    name: str = "AUC within the group",
) -> Markup:
    """A figure of each group that is large enough, one row each; groups that are singled out have another colour.

    Args:
        groups: the leaks; those without the figure are not drawn.
        overall: the figure over all records, drawn as a line; None for no line.
        figure: the area within the group, or the share of its members that is found, drawn as a count of 1 000.
        name: of the axis.

    Example:
        >>> from glasshouse.evaluation import Interval
        >>> counts = {"members": 50, "non_members": 50}
        >>> one = GroupLeak(column="sex", group="f", **counts, auc=0.6, auc_interval=Interval(0.5, 0.7))
        >>> groups_picture([one], overall=0.55).count("<circle")
        1
    """
    drawn = _measured(groups, figure)
    axis = _axis([interval for _, _, interval in drawn], figure)
    height = _ROW * (len(drawn) + len({one.column for one, *_ in drawn})) + 66
    frame = Frame(axis, Axis(0.0, 1.0), _WIDTH, height, left=150.0)
    parts = frame.grid(name, y_ticks=False)
    floor = frame.height - frame.bottom
    lines = [(0.5, "chance")] if figure == "auc" else []
    for value, css in [*lines, *([] if overall is None else [(_scaled(overall, figure), "cut")])]:
        parts.append(element("line", x1=frame.px(value), x2=frame.px(value), y1=frame.top, y2=floor, css=css))
    y, column = frame.top, ""
    for one, value, interval in drawn:
        if one.column != column:
            y, column = y + _ROW, one.column
            parts.append(element("text", _short(column), x=8.0, y=y + 4, css="name"))
        y += _ROW
        css = "s1" if one.singled_out else "s0"
        left, right = frame.px(interval.low), frame.px(interval.high)
        parts.append(element("text", _short(one.group), x=frame.left - 8, y=y + 4, css="key", text_anchor="end"))
        parts.append(element("line", x1=left, x2=right, y1=y, y2=y, css=f"bar {css}"))
        parts.append(element("circle", cx=frame.px(value), cy=y, r=4, css=f"dot {css}"))
    whole = "" if overall is None else f"; over all records it is {_scaled(overall, figure):.4g}"
    label = f"{name}, with interval, of {len(drawn)} groups{whole}."
    return picture(parts, width=_WIDTH, height=height, label=label, css="plot groups")


def _measured(groups: Sequence[GroupLeak], figure: Literal["auc", "tpr"]) -> list[tuple[GroupLeak, float, Interval]]:
    found = []
    for one in groups:
        value, interval = (one.auc, one.auc_interval) if figure == "auc" else (one.tpr, one.tpr_interval)
        if value is not None and interval is not None:
            ends = Interval(_scaled(interval.low, figure), _scaled(interval.high, figure))
            found.append((one, _scaled(value, figure), ends))
    return found


def _scaled(value: float, figure: Literal["auc", "tpr"]) -> float:
    return value if figure == "auc" else 1000 * value


def _axis(intervals: Sequence[Interval], figure: Literal["auc", "tpr"]) -> Axis:
    lows, highs = [one.low for one in intervals], [one.high for one in intervals]
    if figure == "tpr":
        return Axis(0.0, min(1000.0, 1.05 * max([20.0, *highs])))
    return Axis(max(0.0, min([0.48, *lows]) - 0.01), min(1.0, max([0.6, *highs]) + 0.01))


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
