"""A crowd of 1 000: how many of them an attacker points at."""

from __future__ import annotations

from markupsafe import Markup

from glasshouse.report.exposure import Exposure
from glasshouse.report.pictures.axes import element, picture

__all__ = ["exposure_picture", "people_picture"]

_CROWD, _ROW = 1000, 50
_WIDE, _HIGH = 10.0, 13.0
_PERSON = "M5 1.2a2.1 2.1 0 1 1 0 4.2a2.1 2.1 0 1 1 0-4.2zM1.6 11.6V9.2a3.4 3.2 0 0 1 6.8 0v2.4z"
_DOT = "M5 3.4a3.1 3.1 0 1 1 0 6.2a3.1 3.1 0 1 1 0-6.2z"


def people_picture(found: float, *, high: float | None = None, label: str, name: str, people: bool = True) -> Markup:
    """1 000 figures in rows: first those that are pointed at, then those up to the interval's end, then the others.

    Args:
        found: the share that is pointed at.
        high: the upper end of its interval; None if there is none.
        label: for readers who cannot see it.
        name: a word of its own in the page, for the three patterns.
        people: draw people; else dots, for what is not a person.

    Example:
        >>> drawn = people_picture(0.042, high=0.05, label="42 of 1000", name="in")
        >>> drawn.count("<pattern"), drawn.count('class="crowd')
        (3, 3)
    """
    first = _cells(found)
    second = max(first, _cells(found if high is None else high))
    shape = _PERSON if people else _DOT
    parts = []
    for kind, start, stop in (("found", 0, first), ("maybe", first, second), ("rest", second, _CROWD)):
        key = f"{name}-{kind}"
        cell = {"width": _WIDE, "height": _HIGH, "patternUnits": "userSpaceOnUse"}
        parts.append(element("pattern", element("path", d=shape, css=f"one {kind}"), id=key, **cell))
        if stop > start:
            parts.append(element("path", d=_region(start, stop), css=f"crowd {kind}", fill=f"url(#{key})"))
    width, height = _WIDE * _ROW, _HIGH * _CROWD / _ROW
    return picture(parts, width=width, height=height, label=label, css="plot people")


def exposure_picture(exposure: Exposure | None, *, name: str, outsiders: bool = False) -> Markup | None:
    """The members of an exposure, or its outsiders; None if nothing was counted."""
    if exposure is None:
        return None
    per, people = exposure.per, exposure.unit == "records"
    if outsiders:
        told = f"{exposure.wrong:.0f} of {per} outsiders are wrongly accused."
        return people_picture(exposure.wrong / per, label=told, name=name, people=people)
    told = f"{exposure.found:.0f} of {per} members are singled out; with the interval, up to {exposure.high:.0f}."
    return people_picture(exposure.found / per, high=exposure.high / per, label=told, name=name, people=people)


def _cells(share: float) -> int:
    """Figures for a share; one that was found is always seen."""
    return min(_CROWD, max(round(_CROWD * share), 1 if share > 0 else 0))


def _region(start: int, stop: int) -> str:
    """The outline of the cells from ``start`` to ``stop``, row by row: at most three rectangles."""
    path, at = "", start
    while at < stop:
        row, column = divmod(at, _ROW)
        if column or stop - at < _ROW:
            wide, rows = min(stop - at, _ROW - column), 1
        else:
            wide, rows = _ROW, (stop - at) // _ROW
        path += f"M{column * _WIDE:g} {row * _HIGH:g}h{wide * _WIDE:g}v{rows * _HIGH:g}h{-wide * _WIDE:g}z"
        at += wide * rows
    return path
