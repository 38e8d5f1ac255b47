"""A node and its neighbours: round for its own class, square for another; filled for members, hollow for others."""

from __future__ import annotations

import math

from markupsafe import Markup

from glasshouse.report.neighbourhood import Neighbourhood
from glasshouse.report.pictures.axes import element, picture

__all__ = ["neighbourhood_picture"]

_SIZE, _RING = 72.0, 27.0


def neighbourhood_picture(around: Neighbourhood) -> Markup:
    """A small drawing, the node itself in the middle.

    Example:
        >>> drawn = neighbourhood_picture(Neighbourhood((True, False), (True, False), ((0, 1),), 0))
        >>> drawn.count("<circle"), drawn.count("<rect"), drawn.count("<line")
        (1, 1, 1)
    """
    places = [(_SIZE / 2, _SIZE / 2), *_ring(len(around.member) - 1)]
    parts = [
        element("line", x1=places[a][0], y1=places[a][1], x2=places[b][0], y2=places[b][1], css="edge")
        for a, b in around.edges
    ]
    for number, (x, y) in enumerate(places):
        size = 7.0 if number == 0 else 4.5
        css = ("node in" if around.member[number] else "node out") + (" centre" if number == 0 else "")
        if around.alike[number]:
            parts.append(element("circle", cx=x, cy=y, r=size, css=css))
        else:
            parts.append(element("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, css=css))
    return picture(parts, width=_SIZE, height=_SIZE, label=around.sentence(), css="ego")


def _ring(count: int) -> list[tuple[float, float]]:
    turns = [2 * math.pi * number / max(1, count) - math.pi / 2 for number in range(count)]
    return [(_SIZE / 2 + _RING * math.cos(turn), _SIZE / 2 + _RING * math.sin(turn)) for turn in turns]
