"""ROC curves: points to draw, and their picture on logarithmic axes with bands and chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from glasshouse.evaluation import ROC, tpr_intervals
from glasshouse.report.format import percent
from glasshouse.report.pictures.axes import Axis, Frame, element, legend

_POINTS = 160
_COARSE = {"nodes": 21, "halvings": 13}  # enough for a picture


@dataclass(frozen=True)
class Curve:
    """Points of a ROC, FPR rising, each with the interval of the TPR at its FPR, point by point."""

    fpr: tuple[float, ...]  # [P] false-positive rates
    tpr: tuple[float, ...]  # [P] true-positive rates
    low: tuple[float, ...]  # [P] lower ends of the TPR's intervals, each point by itself
    high: tuple[float, ...]  # [P] upper ends
    members: int  # how many members were scored
    non_members: int  # how many non-members; one over this number is the smallest rate that can be measured


def curve_of(roc: ROC, *, confidence: float = 0.95) -> Curve:
    """At most 160 points, evenly spread over the logarithm of the FPR.

    At each grid rate it keeps the largest achievable FPR not above it, so nothing is interpolated. Between two kept
    points the true curve is at or above the step that is drawn.
    """
    outside = roc.non_members
    grid = np.unique(np.rint(np.geomspace(1, outside, _POINTS - 1)).astype(np.int64))
    counts = np.rint(roc.fpr * outside).astype(np.int64)
    kept = np.unique(np.searchsorted(counts, np.concatenate([[0], grid]), side="right") - 1)
    # the true rate behind a count of 0 is not 0: half a non-member stands for it
    bands = tpr_intervals(roc, np.clip(counts[kept], 0.5, outside - 0.5) / outside, confidence=confidence, **_COARSE)
    return Curve(
        fpr=tuple(roc.fpr[kept].tolist()),
        tpr=tuple(roc.tpr[kept].tolist()),
        low=tuple(band.low for band in bands),
        high=tuple(band.high for band in bands),
        members=roc.members,
        non_members=outside,
    )


_LETTERS = 28


def roc_picture(curves: Mapping[str, Curve], *, style: str = "") -> Markup:
    """The curves by the attacks' names as one SVG element, with a style sheet if it is a separate file."""
    most = max(curve.non_members for curve in curves.values())
    axis = Axis(1 / (2 * most), 1.0, log=True, percent=True)
    frame = Frame(axis, axis, 440.0, 400.0)
    parts = [Markup("<style>{}</style>").format(Markup(style))] if style else []  # noqa: S704 (our own sheet)
    parts += [*_floor(frame, 1 / most), *frame.grid("false-positive rate", "true-positive rate")]
    parts.append(element("path", d=frame.line((axis.low, 1), (axis.low, 1)), css="chance"))
    drawn = _joined(curves)
    for index, curve in enumerate(drawn.values()):
        parts.append(element("path", d=_band(frame, curve), css=f"band s{index % 6}"))
    for index, curve in enumerate(drawn.values()):
        path = frame.steps((*curve.fpr, 1.0), (*curve.tpr, 1.0))
        parts.append(element("path", d=path, css=f"curve s{index % 6} d{index % 4}"))
    entries = [(name[:_LETTERS], f"curve s{index % 6} d{index % 4}") for index, name in enumerate(list(drawn)[:12])]
    parts += legend(frame, [*entries, ("chance", "chance")])  # below chance, where useful attacks have no curve
    parts += _told(frame, drawn, most)
    names = ", ".join(curves)
    label = f"True-positive rate against false-positive rate of {names}, both on logarithmic axes, with bands."
    return frame.picture(parts, label=label, css="plot roc")


_STRIPS = 28  # that tell their figures


def _told(frame: Frame, curves: Mapping[str, Curve], most: int) -> list[Markup]:
    """Strips without a colour, each with a title that a reader sees over it: the rates of all curves there."""
    rates = np.unique(np.rint(np.geomspace(1, most, _STRIPS))) / most
    ends = [frame.px(rate) for rate in np.sqrt(rates[1:] * rates[:-1])]
    parts = []
    for rate, left, right in zip(rates, [frame.px(rates[0]), *ends], [*ends, frame.px(1.0)], strict=True):
        found = [
            f"{name}: {percent(curve.tpr[np.searchsorted(curve.fpr, rate * (1 + 1e-9), side='right') - 1])}"
            for name, curve in curves.items()
        ]
        title = element("title", "\n".join([f"at a false-positive rate of {percent(rate)}", *found]))
        size = {"x": left, "y": frame.top, "width": right - left, "height": frame.floor - frame.top}
        parts.append(element("rect", title, css="told", **size))
    return parts


def _joined(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Curves by the names in the legend; equal curves are one line with all names, or one would hide the others."""
    alike: dict[tuple[tuple[float, ...], tuple[float, ...]], list[str]] = {}
    for name, curve in curves.items():
        alike.setdefault((tuple(curve.fpr), tuple(curve.tpr)), []).append(name)
    return {" = ".join(names): curves[names[0]] for names in alike.values()}


def _floor(frame: Frame, smallest: float) -> list[Markup]:
    """A strip for an FPR of 0: a sample of this size cannot distinguish rates below one non-member."""
    left, right, ceiling = frame.px(0.0), frame.px(smallest), frame.top
    told = element("text", "0", x=left + 3, y=frame.floor + 16, css="tick", text_anchor="end")
    return [element("rect", x=left, y=ceiling, width=right - left, height=frame.floor - ceiling, css="floor"), told]


def _band(frame: Frame, curve: Curve) -> str:
    """The area between the lower and the upper ends: forward along the upper, back along the lower."""
    xs = (*curve.fpr, 1.0)
    there = frame.steps(xs, (*curve.high, curve.high[-1]))
    lows = (*curve.low, curve.low[-1])
    back = ""
    for number in range(len(xs) - 1, 0, -1):
        back += f"V{frame.py(lows[number - 1]):.1f}H{frame.px(xs[number - 1]):.1f}"
    return f"{there}V{frame.py(lows[-1]):.1f}{back}Z"
