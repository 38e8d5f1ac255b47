"""How many of the accused are members, for every share of members among those one asks about."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup

from glasshouse.evaluation.accusations import Accusations, precision_at
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["precision_picture"]

_WIDTH, _HEIGHT, _FEWEST = 440.0, 270.0, 0.001


def precision_picture(name: str, found: Accusations) -> Markup:
    """The share of members among the accused against their share among all, with its band; dots at stated priors.

    Args:
        name: of the attack.
        found: what its threshold finds; somebody must be accused.

    Example:
        >>> from glasshouse.evaluation import Interval
        >>> from glasshouse.evaluation.accusations import Precision
        >>> rates = (0.3, Interval(0.2, 0.4), 0.01, Interval(0.0, 0.05), 0.29, Interval(0.2, 0.4))
        >>> drawn = precision_picture("base", Accusations(0.01, *rates, (Precision(0.5, 0.9, Interval(0.8, 1.0)),)))
        >>> drawn.count("<circle")
        1
    """
    frame = Frame(Axis(_FEWEST, 0.5, log=True, percent=True), Axis(0.0, 1.0, percent=True), _WIDTH, _HEIGHT)
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
    return picture(parts, width=_WIDTH, height=_HEIGHT, label=label, css="plot precision")


def _ratio(prior: float, precision: float) -> float:
    """FPR / TPR, from the precision at one prior."""
    return prior / (1 - prior) * (1 / precision - 1) if precision else math.inf
