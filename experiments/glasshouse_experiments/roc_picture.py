"""ROC curves on logarithmic axes as the paper draws them, with the points that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import Axis, Frame, element, picture

__all__ = ["METRIC", "End", "Line", "roc_figure"]

METRIC = "tpr_pct_at_fpr="
_WIDTH, _HEIGHT, _TITLE, _KEY, _ROW = 440.0, 400.0, 44.0, 210.0, 20.0
_COLOURS = {"G-BASE": 0, "BASE": 2, "RMIA": 1, "LiRA": 3, "MLP (0-hop)": 4, "MLP (0+2-hop)": 5}
_DASHES = {"online": 0, "offline": 1}
_WIDE = "RMIA"  # online its curve is that of BASE, which is drawn over it
_MARK = 3.2
_APART = 0.05  # between the marks of two curves at one rate, as a share of a power of ten


class End(NamedTuple):
    """A printed point of a curve: mean and standard deviation of the TPR at an FPR."""

    fpr: float
    tpr: float
    std: float


class Line(NamedTuple):
    """A mean curve, [P] rates rising, and its printed points."""

    attack: str
    mode: str
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    ends: tuple[End, ...]


def roc_figure(lines: Sequence[Line], *, title: str, together: bool, lowest: float) -> str:
    """A complete SVG file: one panel for each mode, or one for both with offline dashed; the key is beside them.

    Hollow marks with a bar of one standard deviation are printed points; those of one rate stand side by side. A point
    below the axes stands on their edge.

    Example:
        >>> line = Line("BASE", "online", (0.01, 1.0), (0.1, 1.0), (End(0.01, 0.12, 0.01),))
        >>> roc_figure([line], title="Cora", together=False, lowest=1e-3).count("<circle")  # one in the key
        2
    """
    modes = [""] if together else list(dict.fromkeys(line.mode for line in lines))
    panels = [_panel([one for one in lines if mode in ("", one.mode)], mode, lowest) for mode in modes]
    width, height = _WIDTH * len(panels) + _KEY, _HEIGHT + _TITLE
    parts = [element("style", Markup(picture_style()))]  # noqa: S704 (our own file)
    parts += [element("rect", width=width, height=height, style="fill: var(--paper)")]
    parts.append(element("text", title, x=10, y=18))
    for number, panel in enumerate(panels):
        parts.append(element("g", Markup("\n").join(panel), transform=f"translate({_WIDTH * number:g} {_TITLE:g})"))
    parts += _key(lines, width - _KEY, together=together)
    names = ", ".join(dict.fromkeys(line.attack for line in lines))
    label = f"Mean true-positive rate against false-positive rate of {names}, both on logarithmic axes."
    return str(picture(parts, width=width, height=height, label=label)) + "\n"


def _panel(lines: Sequence[Line], mode: str, lowest: float) -> list[Markup]:
    axis = Axis(0.6 * lowest, 1.0, log=True)  # marks beside the lowest rate are inside
    frame = Frame(axis, axis, _WIDTH, _HEIGHT)
    parts = [element("text", mode, x=_WIDTH / 2, y=2.0, css="name", text_anchor="middle")] if mode else []
    parts += frame.grid("false-positive rate", "true-positive rate")
    parts.append(element("path", d=frame.line((lowest, 1), (lowest, 1)), css="chance"))
    for line in lines:
        shown = [(x, y) for x, y in zip(line.fpr, line.tpr, strict=True) if x >= lowest]
        xs, ys = (tuple(float(value) for value in part) for part in np.array(shown).T)
        parts.append(_stroke(frame.steps(xs, ys), _css(line, not mode), line.attack))
    for number, line in enumerate(lines):
        parts += _ends(frame, line, lowest, aside=10 ** (_APART * (number - (len(lines) - 1) / 2)))
    return parts


def _ends(frame: Frame, line: Line, lowest: float, *, aside: float) -> list[Markup]:
    """The printed points, each with a bar of one standard deviation, at a multiple of their rate."""
    parts, css = [], f"s{_colour(line.attack)}"
    for end in line.ends:
        if end.fpr < lowest:
            continue
        x, y = frame.px(end.fpr * aside), frame.py(end.tpr)
        top, bottom = frame.py(min(1.0, end.tpr + end.std)), frame.py(max(lowest, end.tpr - end.std))
        bar = element("path", d=f"M{x:.1f} {top:.1f}V{bottom:.1f}", css=f"curve {css}", style="stroke-width: 1")
        parts += [bar, element("circle", cx=x, cy=y, r=_MARK, css=f"hollow {css}")]
    return parts


def _key(lines: Sequence[Line], left: float, *, together: bool) -> list[Markup]:
    """Names with their line styles, one below the other."""
    entries = [(f"{line.attack}, {line.mode}" if together else line.attack, _css(line, together)) for line in lines]
    parts = []
    for row, (name, css) in enumerate(dict.fromkeys([*entries, ("chance", "chance")])):
        y = _TITLE + _ROW * (row + 1)
        parts.append(_stroke(f"M{left:.1f} {y:.1f}h28", css, name))
        parts.append(element("text", name, x=left + 35, y=y + 4, css="key"))
    if not any(line.ends for line in lines):
        return parts
    y = _TITLE + _ROW * (len(dict.fromkeys(entries)) + 2)
    parts.append(element("circle", cx=left + 14, cy=y, r=_MARK, css="hollow s5"))
    return [*parts, element("text", "printed, with one sd", x=left + 35, y=y + 4, css="key")]


def _stroke(path: str, css: str, name: str) -> Markup:
    """A curve, or its sample in the key."""
    wide = {"style": "stroke-width: 5"} if name.startswith(_WIDE) else {}
    return element("path", d=path, css=css, **wide)


def _css(line: Line, together: bool) -> str:
    return f"curve s{_colour(line.attack)} d{_DASHES[line.mode] if together else 0}"


def _colour(attack: str) -> int:
    """By the attack's name without its sampler."""
    return _COLOURS.get(attack, _COLOURS.get(attack.split(" (")[0], 5))
