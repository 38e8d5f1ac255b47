"""A reliability diagram: posteriors compared with the share of members that was found."""

from __future__ import annotations

from markupsafe import Markup

from glasshouse.report.pictures.axes import Axis, Frame, element, picture
from glasshouse.report.reliability import Reliability

__all__ = ["reliability_picture"]

_WIDTH, _HEIGHT = 300.0, 280.0


def reliability_picture(name: str, calibration: Reliability) -> Markup:
    """Share of members against the mean posterior, bin by bin, with intervals; on the diagonal the two agree.

    Example:
        >>> from glasshouse.evaluation import Interval
        >>> found = Reliability((0.2, 0.8), (0.0, 0.5), (Interval(0, 0.8), Interval(0.1, 0.9)), (2, 2), 0.25, 0.2)
        >>> reliability_picture("base", found).count("<circle")
        2
    """
    axis = Axis(0.0, 1.0, percent=True)
    frame = Frame(axis, axis, _WIDTH, _HEIGHT)
    parts = frame.grid(f"posterior of {name}", "share of members")
    line = f"M{frame.px(0):.1f} {frame.py(0):.1f}L{frame.px(1):.1f} {frame.py(1):.1f}"
    parts.append(element("path", d=line, css="chance"))
    for said, found, interval in zip(calibration.said, calibration.found, calibration.intervals, strict=True):
        x = frame.px(said)
        parts.append(element("line", x1=x, x2=x, y1=frame.py(interval.low), y2=frame.py(interval.high), css="bar s0"))
        parts.append(element("circle", cx=x, cy=frame.py(found), r=4, css="dot s0"))
    error, chance = f"{calibration.error:.3f}", f"{calibration.floor:.3f}"
    label = f"Reliability diagram of {name}; expected calibration error {error}, by chance {chance}."
    return picture(parts, width=_WIDTH, height=_HEIGHT, label=label)
