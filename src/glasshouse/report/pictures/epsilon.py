"""What the attacks show about ε, on a line: where the true value can be, and where the claim is."""

from __future__ import annotations

from markupsafe import Markup

from glasshouse.evaluation import PrivacyVerdict
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["epsilon_picture"]

_WIDTH, _HEIGHT = 440.0, 104.0


def epsilon_picture(privacy: PrivacyVerdict) -> Markup:
    """A line of ε with the part that the attacks leave open, and the claim.

    Example:
        >>> epsilon_picture(PrivacyVerdict(epsilon=2.0)).count("<rect")
        1
    """
    claimed = privacy.claim.epsilon if privacy.claim else None
    high = max(1.0, 1.35 * max(privacy.shown, claimed or 0.0))
    frame = Frame(Axis(0.0, high), Axis(0.0, 1.0), _WIDTH, _HEIGHT, left=20, right=20, top=30)
    delta = privacy.claim.delta if privacy.claim else privacy.delta
    parts = frame.grid(f"ε at δ = {delta:g}", y_ticks=False)
    floor = frame.height - frame.bottom
    start, end = frame.px(privacy.shown), frame.px(high)
    parts.append(element("rect", x=start, y=floor - 16, width=end - start, height=16.0, css="open"))
    parts.append(element("line", x1=start, x2=start, y1=frame.top, y2=floor, css="bound"))
    bound = f"shown: ε ≥ {privacy.shown:.2f}" if privacy.shown > 0 else "no lower bound is shown"
    right_half = privacy.shown > high / 2
    parts.append(element("text", bound, x=start, y=24.0, css="key", text_anchor="end" if right_half else "start"))
    label = f"The attacks show that ε is at least {privacy.shown:.2f} at δ = {delta:g}."
    if privacy.shown <= 0:
        label = f"The attacks show no lower bound on ε at δ = {delta:g}, which is not a guarantee."
    if claimed is not None:
        at = frame.px(claimed)
        parts.append(element("line", x1=at, x2=at, y1=frame.top - 16, y2=floor, css="claim"))
        text = f"claimed: {claimed:g}"
        parts.append(
            element("text", text, x=at, y=11.0, css="key", text_anchor="end" if claimed > high / 2 else "start")
        )
        label += f" {claimed:g} was claimed."
    return picture(parts, width=_WIDTH, height=_HEIGHT, label=label, css="plot epsilon")
