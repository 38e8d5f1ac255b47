"""An attack's scores, members beside others."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from glasshouse.report.histograms import Histogram
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["histogram_picture"]

_WIDTH, _HEIGHT = 360.0, 210.0


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
        Axis(edges[0], edges[-1]), Axis(0.0, highest * 1.05, percent=True), _WIDTH, _HEIGHT, left=46, bottom=40
    )
    parts = frame.grid(f"score of {name}")
    for share, css in shares:
        parts.append(element("path", d=_outline(frame, edges, share), css=f"hist {css}"))
    if threshold is not None and edges[0] <= threshold <= edges[-1]:
        at = frame.px(threshold)
        parts.append(element("line", x1=at, x2=at, y1=frame.top, y2=frame.height - frame.bottom, css="cut"))
    known = "members and non-members" if histogram.others is not None else "all records"
    return picture(parts, width=_WIDTH, height=_HEIGHT, label=f"Histogram of the scores of {name}: {known}.")


def _outline(frame: Frame, edges: Sequence[float], shares: Sequence[float]) -> str:
    path = f"M{frame.px(edges[0]):.1f} {frame.py(0):.1f}"
    for right, share in zip(edges[1:], shares, strict=True):
        path += f"V{frame.py(share):.1f}H{frame.px(right):.1f}"
    return path + f"V{frame.py(0):.1f}Z"
