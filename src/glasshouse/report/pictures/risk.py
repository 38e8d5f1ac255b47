"""A picture of how unequal the risk of units is, beside what luck and an equal risk would give."""

from __future__ import annotations

from markupsafe import Markup

from glasshouse.evaluation.risk import RiskFigures
from glasshouse.report.pictures.axes import Axis, Frame, element, legend


def risk_picture(risk: RiskFigures, *, unit: str) -> Markup:
    """Bars: units by the share of their simulated targets that identify them; lines: an equal risk, and luck."""
    bins, most = len(risk.observed), max(*risk.observed, *risk.alike, 1.0)
    frame = Frame(Axis(0.0, 1.0, percent=True), Axis(0.0, 1.05 * most), width=440.0, height=250.0)
    parts = frame.grid("simulated targets that identify it", f"{unit}s")
    edges = [place / bins for place in range(bins + 1)]
    for left, right, count in zip(edges[:-1], edges[1:], risk.observed, strict=True):
        x, y = frame.px(left), frame.py(count)
        parts.append(
            element("rect", x=x + 1, y=y, width=frame.px(right) - x - 2, height=frame.floor - y, css="hist member")
        )
    for counts, css in ((risk.alike, "curve s1 d1"), (risk.luck, "curve s5 d3")):
        found = frame.steps([*edges], [*[min(count, most) for count in counts], min(counts[-1], most)])
        parts.append(element("path", d=found, css=css))
    parts += legend(frame, [("if all were alike", "curve s1 d1"), ("by luck", "curve s5 d3")], upper=True)
    return frame.picture(parts, label=risk.sentence(unit))
