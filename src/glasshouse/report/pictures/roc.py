"""ROC curves on logarithmic axes, with bands, chance, and the smallest rate that the sample can resolve."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from glasshouse.report.figures import Curve
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

_WIDTH, _HEIGHT, _ROW = 440.0, 400.0, 18.0
_LETTERS = 28


def roc_picture(curves: Mapping[str, Curve], *, style: str = "") -> Markup:
    """The curves as one SVG element; the same curves give the same text.

    Args:
        curves: by the attacks' names.
        style: a style sheet to include, if the picture is a separate file.

    Example:
        >>> from glasshouse.evaluation import roc
        >>> from glasshouse.report.figures import curve_of
        >>> roc_picture({"base": curve_of(roc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]))}).startswith("<svg")
        True
    """
    most = max(curve.non_members for curve in curves.values())
    axis = Axis(1 / (2 * most), 1.0, log=True, percent=True)
    frame = Frame(axis, axis, _WIDTH, _HEIGHT)
    parts = [Markup("<style>{}</style>").format(Markup(style))] if style else []  # noqa: S704 (our own sheet)
    parts += [*_floor(frame, 1 / most), *frame.grid("false-positive rate", "true-positive rate")]
    chance = f"M{frame.px(axis.low):.1f} {frame.py(axis.low):.1f}L{frame.px(1):.1f} {frame.py(1):.1f}"
    parts.append(element("path", d=chance, css="chance"))
    drawn = _joined(curves)
    for index, curve in enumerate(drawn.values()):
        parts.append(element("path", d=_band(frame, curve), css=f"band s{index % 6}"))
    for index, curve in enumerate(drawn.values()):
        path = frame.steps((*curve.fpr, 1.0), (*curve.tpr, 1.0))
        parts.append(element("path", d=path, css=f"curve s{index % 6} d{index % 4}"))
    parts += _legend(frame, list(drawn))
    names = ", ".join(curves)
    label = f"True-positive rate against false-positive rate of {names}, both on logarithmic axes, with bands."
    return picture(parts, width=_WIDTH, height=_HEIGHT, label=label, css="plot roc")


def _joined(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Curves by the names in the legend; equal curves are one line with all names, or one would hide the others."""
    alike: dict[tuple[tuple[float, ...], tuple[float, ...]], list[str]] = {}
    for name, curve in curves.items():
        alike.setdefault((tuple(curve.fpr), tuple(curve.tpr)), []).append(name)
    return {" = ".join(names): curves[names[0]] for names in alike.values()}


def _floor(frame: Frame, smallest: float) -> list[Markup]:
    """A strip for an FPR of 0: a sample of this size cannot distinguish rates below one non-member."""
    left, right, ceiling = frame.px(0.0), frame.px(smallest), frame.top
    height = frame.height - frame.bottom - ceiling
    told = element("text", "0", x=left, y=frame.height - frame.bottom + 16, css="tick")
    return [element("rect", x=left, y=ceiling, width=right - left, height=height, css="floor"), told]


def _band(frame: Frame, curve: Curve) -> str:
    """The area between the lower and the upper ends: forward along the upper, back along the lower."""
    xs = (*curve.fpr, 1.0)
    there = frame.steps(xs, (*curve.high, curve.high[-1]))
    lows = (*curve.low, curve.low[-1])
    back = ""
    for number in range(len(xs) - 1, 0, -1):
        back += f"V{frame.py(lows[number - 1]):.1f}H{frame.px(xs[number - 1]):.1f}"
    return f"{there}V{frame.py(lows[-1]):.1f}{back}Z"


def _legend(frame: Frame, names: list[str]) -> list[Markup]:
    """In the corner below chance, where useful attacks have no curve."""
    entries = [(name, f"curve s{index % 6} d{index % 4}") for index, name in enumerate(names[:12])]
    entries.append(("chance", "chance"))
    widest = 8.0 * max(len(name[:_LETTERS]) for name, _ in entries) + 42
    left = frame.width - frame.right - widest - 4
    top = frame.height - frame.bottom - _ROW * len(entries) - 8
    parts = [element("rect", x=left - 6, y=top - 2, width=widest + 6, height=_ROW * len(entries) + 6, css="legend")]
    for row, (name, css) in enumerate(entries):
        y = top + _ROW * (row + 0.5) + 2
        parts.append(element("path", d=f"M{left:.1f} {y:.1f}h28", css=css))
        parts.append(element("text", name[:_LETTERS], x=left + 35, y=y + 4, css="key"))
    return parts
