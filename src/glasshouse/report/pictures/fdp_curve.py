"""Wrong answers of both kinds against each other, beside the curves that a privacy guarantee allows (f-DP)."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from glasshouse.arrays import FloatArray
from glasshouse.evaluation import PrivacyVerdict
from glasshouse.evaluation.privacy import gaussian_trade_off
from glasshouse.report.curves import Curve
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["fdp_picture"]

_WIDTH, _HEIGHT, _ROW = 440.0, 400.0, 18.0


def fdp_picture(privacy: PrivacyVerdict, name: str, measured: Curve) -> Markup:
    """False-negative rate against false-positive rate: chance, the attack, and the curves of μ and of the claim.

    Args:
        privacy: what the attacks show about ε.
        name: of the attack that is drawn.
        measured: its ROC.

    Example:
        >>> from glasshouse.evaluation import roc
        >>> from glasshouse.report.curves import curve_of
        >>> curve = curve_of(roc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]))
        >>> fdp_picture(PrivacyVerdict(), "base", curve).startswith("<svg")
        True
    """
    frame = Frame(Axis(0.0, 1.0, percent=True), Axis(0.0, 1.0, percent=True), _WIDTH, _HEIGHT)
    parts = frame.grid("false-positive rate", "false-negative rate")
    missed = [1 - tpr for tpr in measured.tpr]
    lines = [("chance", "chance", _line(frame, np.array([0.0, 1.0]), np.array([1.0, 0.0])))]
    lines.append((name[:24], "curve s0", frame.steps((*measured.fpr, 1.0), (*missed, 0.0))))
    rates = np.linspace(0.0, 1.0, 101)
    bounds = (
        (privacy.gaussian.mu, "any records", "curve s2 d1"),
        (privacy.independent.mu, "independent", "curve s3 d2"),
    )
    for mu, kind, css in bounds:
        if mu > 0:
            lines.append((f"μ = {mu:.2f}, {kind}", css, _line(frame, rates, gaussian_trade_off(rates, mu))))
    if privacy.claim is not None:
        allowed = _claimed(rates, privacy.claim.epsilon, privacy.claim.delta)
        lines.append(("claimed", "curve s1 d3", _line(frame, rates, allowed)))
    parts += [element("path", d=path, css=css) for _, css, path in lines]
    parts += _legend(frame, [(text, css) for text, css, _ in lines])
    label = f"False-negative rate against false-positive rate of {name}, beside chance and what privacy allows."
    return picture(parts, width=_WIDTH, height=_HEIGHT, label=label, css="plot fdp")


def _claimed(fpr: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """The smallest false-negative rate under (ε, δ)-privacy (Wasserman and Zhou, 2010)."""
    grown = np.exp(min(epsilon, 700.0))
    return np.asarray(np.maximum(0.0, np.maximum(1 - delta - grown * fpr, (1 - delta - fpr) / grown)))


def _line(frame: Frame, xs: FloatArray, ys: FloatArray) -> str:
    return "M" + "L".join(f"{frame.px(float(x)):.1f} {frame.py(float(y)):.1f}" for x, y in zip(xs, ys, strict=True))


def _legend(frame: Frame, entries: list[tuple[str, str]]) -> list[Markup]:
    """In the upper right corner, which lies above chance."""
    widest = 8.0 * max(len(text) for text, _ in entries) + 42
    left, top = frame.width - frame.right - widest - 4, frame.top + 6
    parts = [element("rect", x=left - 6, y=top - 2, width=widest + 6, height=_ROW * len(entries) + 6, css="legend")]
    for row, (text, css) in enumerate(entries):
        y = top + _ROW * (row + 0.5) + 2
        parts.append(element("path", d=f"M{left:.1f} {y:.1f}h28", css=css))
        parts.append(element("text", text, x=left + 35, y=y + 4, css="key"))
    return parts
