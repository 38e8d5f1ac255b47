"""The leak per group: a dot and its interval for each group, beside the line of all records."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["groups_picture"]

_WIDTH, _ROW, _LETTERS = 520.0, 19.0, 24


def groups_picture(groups: Sequence[GroupLeak], *, overall: float) -> Markup:
    """AUC of each group that is large enough, one row each; groups that are singled out have another colour.

    Args:
        groups: the leaks; those without an AUC are not drawn.
        overall: the AUC over all records, drawn as a line.

    Example:
        >>> from glasshouse.evaluation import Interval
        >>> counts = {"members": 50, "non_members": 50}
        >>> one = GroupLeak(column="sex", group="f", **counts, auc=0.6, auc_interval=Interval(0.5, 0.7))
        >>> groups_picture([one], overall=0.55).count("<circle")
        1
    """
    drawn = [(one, one.auc, one.auc_interval) for one in groups if one.auc is not None and one.auc_interval is not None]
    lows, highs = [interval.low for _, _, interval in drawn], [interval.high for _, _, interval in drawn]
    axis = Axis(max(0.0, min([0.48, *lows]) - 0.01), min(1.0, max([0.6, *highs]) + 0.01))
    height = _ROW * (len(drawn) + len({one.column for one, *_ in drawn})) + 66
    frame = Frame(axis, Axis(0.0, 1.0), _WIDTH, height, left=170.0)
    parts = frame.grid("AUC within the group", y_ticks=False)
    floor = frame.height - frame.bottom
    for value, css in ((0.5, "chance"), (overall, "cut")):
        parts.append(element("line", x1=frame.px(value), x2=frame.px(value), y1=frame.top, y2=floor, css=css))
    y, column = frame.top, ""
    for one, area, interval in drawn:
        if one.column != column:
            y, column = y + _ROW, one.column
            parts.append(element("text", _short(column), x=8.0, y=y + 4, css="name"))
        y += _ROW
        css = "s1" if one.singled_out else "s0"
        left, right = frame.px(interval.low), frame.px(interval.high)
        parts.append(element("text", _short(one.group), x=frame.left - 8, y=y + 4, css="key", text_anchor="end"))
        parts.append(element("line", x1=left, x2=right, y1=y, y2=y, css=f"bar {css}"))
        parts.append(element("circle", cx=frame.px(area), cy=y, r=4, css=f"dot {css}"))
    label = f"AUC with interval of {len(drawn)} groups; over all records it is {overall:.3f}."
    return picture(parts, width=_WIDTH, height=height, label=label, css="plot groups")


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
