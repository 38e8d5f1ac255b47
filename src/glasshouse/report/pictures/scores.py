"""Pictures of scores: their distribution, their calibration, and how many flagged records are members."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from glasshouse.evaluation.precision import FlaggedRates, precision_at
from glasshouse.report.figures import Histogram, Reliability
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

_HISTOGRAM_WIDTH, _HISTOGRAM_HEIGHT = 360.0, 210.0


def histogram_picture(name: str, histogram: Histogram, *, threshold: float | None = None) -> Markup:
    """Shares of members and of others in each bin; a line where the attack would begin to call members.

    Example:
        >>> histogram_picture("base", Histogram((0.0, 0.5, 1.0), (1, 3), (2, 2), 0)).count("<path")
        2
    """
    groups = [(histogram.members, "member")]
    if histogram.others is not None:
        groups.append((histogram.others, "other"))
    shares = [([count / max(1, sum(counts)) for count in counts], css) for counts, css in groups]
    highest = max(max(share) for share, _ in shares) or 1.0
    edges = histogram.edges
    frame = Frame(
        Axis(edges[0], edges[-1]),
        Axis(0.0, highest * 1.05, percent=True),
        _HISTOGRAM_WIDTH,
        _HISTOGRAM_HEIGHT,
        left=46,
        bottom=40,
    )
    parts = frame.grid(f"score of {name}")
    for share, css in shares:
        parts.append(element("path", d=_outline(frame, edges, share), css=f"hist {css}"))
    if threshold is not None and edges[0] <= threshold <= edges[-1]:
        at = frame.px(threshold)
        parts.append(element("line", x1=at, x2=at, y1=frame.top, y2=frame.height - frame.bottom, css="cut"))
    known = "members and non-members" if histogram.others is not None else "all records"
    return picture(
        parts, width=_HISTOGRAM_WIDTH, height=_HISTOGRAM_HEIGHT, label=f"Histogram of the scores of {name}: {known}."
    )


def _outline(frame: Frame, edges: Sequence[float], shares: Sequence[float]) -> str:
    path = f"M{frame.px(edges[0]):.1f} {frame.py(0):.1f}"
    for right, share in zip(edges[1:], shares, strict=True):
        path += f"V{frame.py(share):.1f}H{frame.px(right):.1f}"
    return path + f"V{frame.py(0):.1f}Z"


_RELIABILITY_WIDTH, _RELIABILITY_HEIGHT = 300.0, 280.0


def reliability_picture(name: str, calibration: Reliability) -> Markup:
    """Share of members against the mean posterior, bin by bin, with intervals; on the diagonal the two agree.

    Example:
        >>> from glasshouse.evaluation import Interval
        >>> found = Reliability((0.2, 0.8), (0.0, 0.5), (Interval(0, 0.8), Interval(0.1, 0.9)), (2, 2), 0.25, 0.2)
        >>> reliability_picture("base", found).count("<circle")
        2
    """
    axis = Axis(0.0, 1.0, percent=True)
    frame = Frame(axis, axis, _RELIABILITY_WIDTH, _RELIABILITY_HEIGHT)
    parts = frame.grid(f"posterior of {name}", "share of members")
    line = f"M{frame.px(0):.1f} {frame.py(0):.1f}L{frame.px(1):.1f} {frame.py(1):.1f}"
    parts.append(element("path", d=line, css="chance"))
    for said, found, interval in zip(calibration.said, calibration.found, calibration.intervals, strict=True):
        x = frame.px(said)
        parts.append(element("line", x1=x, x2=x, y1=frame.py(interval.low), y2=frame.py(interval.high), css="bar s0"))
        parts.append(element("circle", cx=x, cy=frame.py(found), r=4, css="dot s0"))
    error, chance = f"{calibration.error:.3f}", f"{calibration.floor:.3f}"
    label = f"Reliability diagram of {name}; expected calibration error {error}, by chance {chance}."
    return picture(parts, width=_RELIABILITY_WIDTH, height=_RELIABILITY_HEIGHT, label=label)


_PRECISION_WIDTH, _PRECISION_HEIGHT, _FEWEST = 440.0, 270.0, 0.001


def precision_picture(name: str, found: FlaggedRates) -> Markup:
    """The share of members among the accused against their share among all, with its band; dots at stated priors.

    Args:
        name: of the attack.
        found: what its threshold finds; somebody must be accused.

    Example:
        >>> from glasshouse.evaluation import Interval
        >>> from glasshouse.evaluation.precision import Precision
        >>> rates = (0.3, Interval(0.2, 0.4), 0.01, Interval(0.0, 0.05), 0.29, Interval(0.2, 0.4))
        >>> drawn = precision_picture("base", FlaggedRates(0.01, *rates, (Precision(0.5, 0.9, Interval(0.8, 1.0)),)))
        >>> drawn.count("<circle")
        1
    """
    frame = Frame(
        Axis(_FEWEST, 0.5, log=True, percent=True), Axis(0.0, 1.0, percent=True), _PRECISION_WIDTH, _PRECISION_HEIGHT
    )
    parts = frame.grid("members among those asked about", "members among the accused")
    priors = np.geomspace(_FEWEST, 0.5, 60).tolist()
    last = found.precisions[-1]  # one precision gives the ratio of the rates, and so all the others
    value, low, high = (
        [precision_at(prior, _ratio(last.prior, share)) for prior in priors]
        for share in (last.value or 0.0, last.interval.low, last.interval.high)
    )
    there = [f"{frame.px(x):.1f} {frame.py(y):.1f}" for x, y in zip(priors, high, strict=True)]
    back = [f"{frame.px(x):.1f} {frame.py(y):.1f}" for x, y in zip(reversed(priors), reversed(low), strict=True)]
    parts.append(element("path", d="M" + "L".join([*there, *back]) + "Z", css="band s0"))
    chance = "L".join(f"{frame.px(x):.1f} {frame.py(x):.1f}" for x in priors)
    parts.append(element("path", d=f"M{chance}", css="chance"))
    line = "L".join(f"{frame.px(x):.1f} {frame.py(y):.1f}" for x, y in zip(priors, value, strict=True))
    parts.append(element("path", d=f"M{line}", css="curve s0"))
    for one in found.precisions:
        if one.value is not None:
            parts.append(element("circle", cx=frame.px(one.prior), cy=frame.py(one.value), r=4, css="dot s0"))
    label = f"Share of members among those that {name} accuses, against their share among those asked about."
    return picture(parts, width=_PRECISION_WIDTH, height=_PRECISION_HEIGHT, label=label, css="plot precision")


def _ratio(prior: float, precision: float) -> float:
    """FPR / TPR, from the precision at one prior."""
    return prior / (1 - prior) * (1 / precision - 1) if precision else math.inf
