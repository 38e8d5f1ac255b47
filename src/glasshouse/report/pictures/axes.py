"""Axes of a picture: from data to places in the picture, and the grid behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

_LABEL_HEIGHT = 16
_LEGEND_ROW = 18.0


def element(name: str, text: str | None = None, **attributes: object) -> Markup:
    """One SVG element; everything in it is escaped. ``css`` becomes ``class``, underscores become hyphens."""
    names = {"css": "class", "viewBox": "viewBox"}
    told = Markup("").join(
        Markup(' {}="{}"').format(names.get(key, key.replace("_", "-")), _number(value))
        for key, value in attributes.items()
    )
    if text is None:
        return Markup("<{}{}/>").format(Markup(name), told)  # noqa: S704 (names are our own)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), told, text)  # noqa: S704


def picture(parts: Iterable[Markup], *, width: float, height: float, label: str, css: str = "plot") -> Markup:
    """An SVG picture with a label for readers who cannot see it."""
    return element(
        "svg",
        Markup("\n").join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
        css=css,
    )


@dataclass(frozen=True)
class Axis:
    """A range of values, linear or logarithmic, and how its ticks are written."""

    low: float
    high: float
    log: bool = False
    percent: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a value is, from 0 to 1; values outside are put at its ends."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> Sequence[tuple[float, str]]:
        """Round values inside the range, and how they are written."""
        values = self._decades() if self.log else self._round_steps()
        return [(value, f"{100 * value:.6g} %" if self.percent else f"{value:.6g}") for value in values]

    def _decades(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1.0,) if self.high / self.low >= 100 else (1.0, 2.0, 5.0)
        values = [step * 10.0**power for power in powers for step in steps]
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]

    def _round_steps(self) -> list[float]:
        rough = (self.high - self.low) / 4
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * part for part in (1.0, 2.0, 2.5, 5.0, 10.0) if unit * part >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [round((first + number) * step, 12) + 0.0 for number in range(count)]


@dataclass(frozen=True)
class Frame:
    """A drawing area with an axis on each side; sizes are in the picture's own units."""

    x: Axis
    y: Axis
    width: float
    height: float
    left: float = 66
    right: float = 24
    top: float = 12
    bottom: float = 46

    @property
    def floor(self) -> float:
        """Where the x axis is."""
        return self.height - self.bottom

    def px(self, value: float) -> float:
        """Horizontal place of a value."""
        return self.left + self.x.share(value) * (self.width - self.left - self.right)

    def py(self, value: float) -> float:
        """Vertical place of a value."""
        return self.floor - self.y.share(value) * (self.height - self.top - self.bottom)

    def grid(self, xlabel: str, ylabel: str = "", *, y_ticks: bool = True) -> list[Markup]:
        """Grid lines, the ticks' texts and the axes' names."""
        floor, end = self.floor, self.width - self.right
        parts = []
        for value, text in self.x.ticks():
            at = self.px(value)
            parts.append(self.upright(at, "grid"))
            parts.append(element("text", text, x=at, y=floor + _LABEL_HEIGHT, css="tick", text_anchor="middle"))
        for value, text in self.y.ticks() if y_ticks else []:
            at = self.py(value)
            parts.append(element("line", x1=self.left, x2=end, y1=at, y2=at, css="grid"))
            parts.append(element("text", text, x=self.left - 6, y=at + 4, css="tick", text_anchor="end"))
        parts.append(element("line", x1=self.left, x2=end, y1=floor, y2=floor, css="axis"))
        middle = (self.left + end) / 2
        parts.append(element("text", xlabel, x=middle, y=self.height - 8, css="name", text_anchor="middle"))
        if ylabel:
            across = (self.top + floor) / 2
            turned = f"rotate(-90 13 {across:g})"
            parts.append(element("text", ylabel, x=13, y=across, css="name", text_anchor="middle", transform=turned))
        return parts

    def upright(self, at: float, css: str) -> Markup:
        """A line from the top to the x axis at a horizontal place."""
        return element("line", x1=at, x2=at, y1=self.top, y2=self.floor, css=css)

    def picture(self, parts: Iterable[Markup], *, label: str, css: str = "plot") -> Markup:
        """What was drawn in this frame, as an SVG picture."""
        return picture(parts, width=self.width, height=self.height, label=label, css=css)

    def line(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """A path of straight lines from point to point."""
        return "M" + "L".join(f"{self.px(x):.1f} {self.py(y):.1f}" for x, y in zip(xs, ys, strict=True))

    def steps(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """A path that keeps each value until the next: rates are never interpolated."""
        path = f"M{self.px(xs[0]):.1f} {self.py(ys[0]):.1f}"
        for x, y in zip(xs[1:], ys[1:], strict=True):
            path += f"H{self.px(x):.1f}V{self.py(y):.1f}"
        return path


def legend(frame: Frame, entries: Sequence[tuple[str, str]], *, upper: bool = False) -> list[Markup]:
    """Names with their line styles, in the lower or the upper right corner of a frame."""
    widest, tall = 8.0 * max(len(text) for text, _ in entries) + 42, _LEGEND_ROW * len(entries)
    left = frame.width - frame.right - widest - 4
    top = frame.top + 6 if upper else frame.floor - tall - 8
    parts = [element("rect", x=left - 6, y=top - 2, width=widest + 6, height=tall + 6, css="legend")]
    for row, (text, css) in enumerate(entries):
        y = top + _LEGEND_ROW * (row + 0.5) + 2
        parts.append(element("path", d=f"M{left:.1f} {y:.1f}h28", css=css))
        parts.append(element("text", text, x=left + 35, y=y + 4, css="key"))
    return parts


def _number(value: object) -> object:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
