"""What a defence gains and costs: exposure against usefulness, one point per run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from glasshouse.evaluation import Interval
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["Point", "tradeoff_picture"]

_WIDTH, _HEIGHT = 440.0, 360.0


class Point(NamedTuple):
    """One run in the picture: its number in the legend, and both figures with their intervals."""

    number: int
    accuracy: float
    accuracy_interval: Interval
    tpr: float
    tpr_interval: Interval


def tradeoff_picture(points: Sequence[Point], *, fpr: float) -> Markup:
    """TPR at one FPR against test accuracy; the best corner is at the lower right.

    Example:
        >>> point = Point(1, 0.9, Interval(0.88, 0.92), 0.1, Interval(0.05, 0.2))
        >>> tradeoff_picture([point], fpr=0.01).count("<circle")
        1
    """
    lows = [point.accuracy_interval.low for point in points]
    highs = [point.accuracy_interval.high for point in points]
    room = max(0.01, 0.08 * (max(highs) - min(lows)))
    most = max(*(point.tpr_interval.high for point in points), 2 * fpr)
    x = Axis(max(0.0, min(lows) - room), min(1.0, max(highs) + room), percent=True)
    frame = Frame(x, Axis(0.0, min(1.0, 1.08 * most), percent=True), _WIDTH, _HEIGHT)
    parts = frame.grid("test accuracy → more useful", f"TPR at {100 * fpr:g} % FPR → more exposed")
    level = frame.py(fpr)
    parts.append(element("line", x1=frame.left, x2=frame.width - frame.right, y1=level, y2=level, css="chance"))
    end = frame.width - frame.right - 4
    parts.append(element("text", "chance", x=end, y=level - 4, css="tick", text_anchor="end"))
    for point in points:
        at, up = frame.px(point.accuracy), frame.py(point.tpr)
        css = f"bar s{(point.number - 1) % 6}"
        across, along = point.accuracy_interval, point.tpr_interval
        parts.append(element("line", x1=frame.px(across.low), x2=frame.px(across.high), y1=up, y2=up, css=css))
        parts.append(element("line", x1=at, x2=at, y1=frame.py(along.low), y2=frame.py(along.high), css=css))
    for point in points:
        at, up = frame.px(point.accuracy), frame.py(point.tpr)
        parts.append(element("circle", cx=at, cy=up, r=9.0, css=f"dot s{(point.number - 1) % 6}"))
        parts.append(element("text", str(point.number), x=at, y=up + 4, css="number", text_anchor="middle"))
    label = f"True-positive rate at a false-positive rate of {100 * fpr:g} % against test accuracy, one point per run."
    return picture(parts, width=_WIDTH, height=_HEIGHT, label=label, css="plot tradeoff")
