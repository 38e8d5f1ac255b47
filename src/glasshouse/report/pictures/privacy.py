"""Pictures of privacy: the bound on ε, the trade-off of both errors (f-DP), and what a defence gains and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from glasshouse.evaluation import Interval, PrivacyVerdict
from glasshouse.evaluation.privacy.bounds import gaussian_trade_off
from glasshouse.report.pictures.axes import Axis, Frame, element, legend
from glasshouse.report.pictures.scores import Curve


def epsilon_picture(privacy: PrivacyVerdict) -> Markup:
    """A line of ε with the part that the attacks leave open, and the claim."""
    claimed = privacy.claim.epsilon if privacy.claim else None
    high = max(1.0, 1.35 * max(privacy.shown, claimed or 0.0))
    frame = Frame(Axis(0.0, high), Axis(0.0, 1.0), 440.0, 104.0, left=20, right=20, top=30)
    delta = privacy.claim.delta if privacy.claim else privacy.delta
    parts = frame.grid(f"ε at δ = {delta:g}", y_ticks=False)
    floor = frame.floor
    start, end = frame.px(privacy.shown), frame.px(high)
    parts.append(element("rect", x=start, y=floor - 16, width=end - start, height=16.0, css="open"))
    parts.append(frame.upright(start, "bound"))
    bound = f"shown: ε ≥ {privacy.shown:.2f}" if privacy.shown > 0 else "no lower bound is shown"
    side = "end" if privacy.shown > high / 2 else "start"
    parts.append(element("text", bound, x=start, y=24.0, css="key", text_anchor=side))
    label = f"The attacks show that ε is at least {privacy.shown:.2f} at δ = {delta:g}."
    if privacy.shown <= 0:
        label = f"The attacks show no lower bound on ε at δ = {delta:g}, which is not a guarantee."
    if claimed is not None:
        at = frame.px(claimed)
        parts.append(element("line", x1=at, x2=at, y1=frame.top - 16, y2=floor, css="claim"))
        side = "end" if claimed > high / 2 else "start"
        parts.append(element("text", f"claimed: {claimed:g}", x=at, y=11.0, css="key", text_anchor=side))
        label += f" {claimed:g} was claimed."
    return frame.picture(parts, label=label, css="plot epsilon")


def fdp_picture(privacy: PrivacyVerdict, name: str, measured: Curve) -> Markup:
    """False-negative rate against false-positive rate: chance, the attack, and the curves of μ and of the claim."""
    frame = Frame(Axis(0.0, 1.0, percent=True), Axis(0.0, 1.0, percent=True), 440.0, 400.0)
    parts = frame.grid("false-positive rate", "false-negative rate")
    missed = [1 - tpr for tpr in measured.tpr]
    lines = [("chance", "chance", frame.line((0, 1), (1, 0)))]
    lines.append((name[:24], "curve s0", frame.steps((*measured.fpr, 1.0), (*missed, 0.0))))
    rates = np.linspace(0.0, 1.0, 101)
    gaussian, independent = privacy.gaussian.mu, privacy.independent.mu
    for mu, kind, css in ((gaussian, "any records", "curve s2 d1"), (independent, "independent", "curve s3 d2")):
        if mu > 0:
            lines.append((f"μ = {mu:.2f}, {kind}", css, frame.line(rates, gaussian_trade_off(rates, mu))))
    if privacy.claim is not None:  # the smallest rate under (ε, δ)-privacy (Wasserman and Zhou, 2010)
        delta, grown = privacy.claim.delta, np.exp(min(privacy.claim.epsilon, 700.0))
        allowed = np.maximum(0.0, np.maximum(1 - delta - grown * rates, (1 - delta - rates) / grown))
        lines.append(("claimed", "curve s1 d3", frame.line(rates, allowed)))
    parts += [element("path", d=path, css=css) for _, css, path in lines]
    parts += legend(frame, [(text, css) for text, css, _ in lines], upper=True)  # above chance
    label = f"False-negative rate against false-positive rate of {name}, beside chance and what privacy allows."
    return frame.picture(parts, label=label, css="plot fdp")


_RADIUS = 9.0  # of a numbered circle


class Point(NamedTuple):
    """One run in the picture: its number in the legend, and both figures with their intervals."""

    number: int
    accuracy: float
    accuracy_interval: Interval
    tpr: float
    tpr_interval: Interval


def tradeoff_picture(points: Sequence[Point], *, fpr: float | None) -> Markup:
    """TPR at one FPR, or AUC without one, against test accuracy; the best corner is at the lower right."""
    figure = "AUC" if fpr is None else f"TPR at {100 * fpr:g} % FPR"
    chance, lowest = (0.5, 0.4) if fpr is None else (fpr, 0.0)
    lows = [point.accuracy_interval.low for point in points]
    highs = [point.accuracy_interval.high for point in points]
    room = max(0.01, 0.08 * (max(highs) - min(lows)))
    most = max(*(point.tpr_interval.high for point in points), 2 * (fpr or 0.3))
    x = Axis(max(0.0, min(lows) - room), min(1.0, max(highs) + room), percent=True)
    frame = Frame(x, Axis(lowest, min(1.0, 1.08 * most), percent=fpr is not None), 440.0, 360.0)
    parts = frame.grid("test accuracy → more useful", f"{figure} → more exposed")
    level, end = frame.py(chance), frame.width - frame.right
    parts.append(element("line", x1=frame.left, x2=end, y1=level, y2=level, css="chance"))
    parts.append(element("text", "chance", x=end - 4, y=level - 4, css="tick", text_anchor="end"))
    for point in points:
        at, up = frame.px(point.accuracy), frame.py(point.tpr)
        css = f"bar s{(point.number - 1) % 6}"
        across, along = point.accuracy_interval, point.tpr_interval
        parts.append(element("line", x1=frame.px(across.low), x2=frame.px(across.high), y1=up, y2=up, css=css))
        parts.append(element("line", x1=at, x2=at, y1=frame.py(along.low), y2=frame.py(along.high), css=css))
    placed: list[tuple[Point, float, float]] = []  # the first, which the others are compared with, where it is
    for point in points:
        at, up = frame.px(point.accuracy), frame.py(point.tpr)
        while any(math.hypot(at - x, up - y) < _RADIUS for _, x, y in placed):  # else it would hide the other's number
            at += 2 * _RADIUS
        placed.append((point, at, up))
    for point, at, up in reversed(placed):
        parts.append(element("circle", cx=at, cy=up, r=_RADIUS, css=f"dot s{(point.number - 1) % 6}"))
        parts.append(element("text", str(point.number), x=at, y=up + 4, css="number", text_anchor="middle"))
    label = f"{figure} against test accuracy, one point per run."
    return frame.picture(parts, label=label, css="plot tradeoff")
