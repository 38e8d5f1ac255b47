"""Scores: ROC curves, distribution, calibration, and how many flagged records are members, each with its picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import ROC, Interval, clopper_pearson, tpr_intervals
from glasshouse.evaluation.checks.calibration import binned, calibration_floor
from glasshouse.evaluation.thresholds import FlaggedRates, precision_at
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
    # a strip for an FPR of 0: a sample of this size cannot distinguish rates below one non-member
    left, strip = frame.px(0.0), frame.px(1 / most) - frame.px(0.0)
    parts.append(element("rect", x=left, y=frame.top, width=strip, height=frame.floor - frame.top, css="floor"))
    parts.append(element("text", "0", x=left + 3, y=frame.floor + 16, css="tick", text_anchor="end"))
    parts += frame.grid("false-positive rate", "true-positive rate")
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


def _band(frame: Frame, curve: Curve) -> str:
    """The area between the lower and the upper ends: forward along the upper, back along the lower."""
    xs = (*curve.fpr, 1.0)
    there = frame.steps(xs, (*curve.high, curve.high[-1]))
    lows = (*curve.low, curve.low[-1])
    back = ""
    for number in range(len(xs) - 1, 0, -1):
        back += f"V{frame.py(lows[number - 1]):.1f}H{frame.px(xs[number - 1]):.1f}"
    return f"{there}V{frame.py(lows[-1]):.1f}{back}Z"


_BINS = 40
_TAIL = 0.005


@dataclass(frozen=True)
class Histogram:
    """Counts of scores in bins of equal width; scores outside count in the first and the last bin."""

    edges: tuple[float, ...]  # [B + 1]
    members: tuple[int, ...]  # [B] how many members; how many records if the members are not known
    others: tuple[int, ...] | None  # [B] how many non-members; None if the members are not known
    cut: int  # how many scores are outside the edges


def histogram_of(scores: FloatArray, members: BoolArray | None, *, posterior: bool = False) -> Histogram:
    """Counts of scores [N]; the bins cover [0, 1] for a probability, else all but the farthest scores on each side."""
    low, high = (0.0, 1.0) if posterior else (float(np.quantile(scores, q)) for q in (_TAIL, 1 - _TAIL))
    if not high > low:  # all scores are equal
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    inside = np.clip(scores, low, high)
    parts = [inside] if members is None else [inside[members], inside[~members]]
    counts = [tuple(np.histogram(part, edges)[0].tolist()) for part in parts]
    return Histogram(
        edges=tuple(edges.tolist()),
        members=counts[0],
        others=None if members is None else counts[1],
        cut=int((inside != scores).sum()),
    )


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: records in bins of their posterior."""

    said: tuple[float, ...]  # mean posterior of each bin that holds a record
    found: tuple[float, ...]  # share of members in it
    intervals: tuple[Interval, ...]  # Clopper-Pearson intervals of the share
    counts: tuple[int, ...]  # records in it
    error: float  # expected calibration error: the mean of |said - found| over records
    floor: float  # the error that chance alone gives, even if every posterior is exactly right


def reliability_of(posteriors: FloatArray, members: BoolArray, *, confidence: float = 0.95) -> Reliability:
    """Compare posteriors [N] with true membership [N], in ten bins of equal width."""
    bins = binned(posteriors, members)
    counts = np.rint(bins.mass * len(posteriors)).astype(np.int64).tolist()
    hits = np.rint(bins.found * counts).astype(np.int64).tolist()
    return Reliability(
        said=tuple(bins.said.tolist()),
        found=tuple(bins.found.tolist()),
        intervals=tuple(clopper_pearson(*pair, confidence=confidence) for pair in zip(hits, counts, strict=True)),
        counts=tuple(counts),
        error=bins.error,
        floor=calibration_floor(posteriors),
    )


def histogram_picture(name: str, histogram: Histogram, *, threshold: float | None = None) -> Markup:
    """Shares of members and of non-members in each bin; a line at the threshold of the attack."""
    groups = [(histogram.members, "member")]
    if histogram.others is not None:
        groups.append((histogram.others, "other"))
    shares = [([count / max(1, sum(counts)) for count in counts], css) for counts, css in groups]
    highest = max(max(share) for share, _ in shares) or 1.0
    edges = histogram.edges
    axes = Axis(edges[0], edges[-1]), Axis(0.0, highest * 1.05, percent=True)
    frame = Frame(*axes, width=360.0, height=210.0, left=46, bottom=40)
    parts = frame.grid(f"score of {name}")
    for share, css in shares:
        parts.append(element("path", d=_outline(frame, edges, share), css=f"hist {css}"))
    if threshold is not None and edges[0] <= threshold <= edges[-1]:
        parts.append(frame.upright(frame.px(threshold), "cut"))
    known = "members and non-members" if histogram.others is not None else "all records"
    return frame.picture(parts, label=f"Histogram of the scores of {name}: {known}.")


def _outline(frame: Frame, edges: Sequence[float], shares: Sequence[float]) -> str:
    path = f"M{frame.px(edges[0]):.1f} {frame.py(0):.1f}"
    for right, share in zip(edges[1:], shares, strict=True):
        path += f"V{frame.py(share):.1f}H{frame.px(right):.1f}"
    return path + f"V{frame.py(0):.1f}Z"


def reliability_picture(name: str, calibration: Reliability) -> Markup:
    """Share of members against the mean posterior, bin by bin, with intervals; on the diagonal the two agree."""
    axis = Axis(0.0, 1.0, percent=True)
    frame = Frame(axis, axis, width=300.0, height=280.0)
    parts = frame.grid(f"posterior of {name}", "share of members")
    parts.append(element("path", d=frame.line((0, 1), (0, 1)), css="chance"))
    for said, found, interval in zip(calibration.said, calibration.found, calibration.intervals, strict=True):
        x = frame.px(said)
        parts.append(element("line", x1=x, x2=x, y1=frame.py(interval.low), y2=frame.py(interval.high), css="bar s0"))
        parts.append(element("circle", cx=x, cy=frame.py(found), r=4, css="dot s0"))
    error, chance = f"{calibration.error:.3f}", f"{calibration.floor:.3f}"
    label = f"Reliability diagram of {name}; expected calibration error {error}, by chance {chance}."
    return frame.picture(parts, label=label)


_FEWEST = 0.001


def precision_picture(name: str, found: FlaggedRates) -> Markup:
    """The share of members among the flagged against their share among all, with its band; dots at stated priors."""
    axes = Axis(_FEWEST, 0.5, log=True, percent=True), Axis(0.0, 1.0, percent=True)
    frame = Frame(*axes, width=440.0, height=270.0)
    parts = frame.grid("share of members among all records", "share of members among the flagged")
    priors = np.geomspace(_FEWEST, 0.5, 60).tolist()
    last = found.precisions[-1]  # one precision gives the ratio of the rates, and so all the others
    value, low, high = (
        [precision_at(prior, _ratio(last.prior, share)) for prior in priors]
        for share in (last.value or 0.0, last.interval.low, last.interval.high)
    )
    band = frame.line([*priors, *reversed(priors)], [*high, *reversed(low)])
    parts.append(element("path", d=f"{band}Z", css="band s0"))
    parts.append(element("path", d=frame.line(priors, priors), css="chance"))
    parts.append(element("path", d=frame.line(priors, value), css="curve s0"))
    for one in found.precisions:
        if one.value is not None:
            parts.append(element("circle", cx=frame.px(one.prior), cy=frame.py(one.value), r=4, css="dot s0"))
    label = f"Share of members among the records that {name} flags, against their share among all records."
    return frame.picture(parts, label=label, css="plot precision")


def _ratio(prior: float, precision: float) -> float:
    """FPR / TPR, from the precision at one prior."""
    return prior / (1 - prior) * (1 / precision - 1) if precision else math.inf
