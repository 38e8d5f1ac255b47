"""The nodes around a record of a graph, and their picture: filled for members, round for the node's own class."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from glasshouse.core.arrays import BoolArray, IntArray
from glasshouse.core.numerics import distinct
from glasshouse.report.pictures.axes import element, picture

_DRAWN = 10


@dataclass(frozen=True)
class Neighbourhood:
    """A node, number 0, and some of its neighbours."""

    member: tuple[bool, ...]  # [D] whether each of them trained the target
    alike: tuple[bool, ...]  # [D] whether each of them has the class of node 0
    edges: tuple[tuple[int, int], ...]  # pairs of numbers below D
    hidden: int  # neighbours that are not drawn

    def sentence(self) -> str:
        """What the drawing shows, for readers who cannot see it."""
        drawn = len(self.member) - 1
        many = f"{drawn} neighbour" + ("" if drawn == 1 else "s") + (f" of {drawn + self.hidden}" * (self.hidden > 0))
        return f"{many}: {sum(self.member[1:])} members, {sum(self.alike[1:])} of its own class"


class Surroundings:
    """The edges [2, E] around the audited nodes [N], in any direction and order: degrees and neighbourhoods."""

    def __init__(self, edges: ArrayLike, *, members: ArrayLike, labels: ArrayLike, nodes: ArrayLike) -> None:
        self._members: BoolArray = np.asarray(members, dtype=np.bool_)
        self._labels = np.asarray(labels)
        self._nodes = np.asarray(nodes, dtype=np.int64)
        count = len(self._members)
        ends = np.asarray(edges, dtype=np.int64).reshape(2, -1)
        ends = ends[:, ends[0] != ends[1]]
        codes = distinct(np.concatenate([ends[0] * count + ends[1], ends[1] * count + ends[0]]))
        self._neighbours = codes % count
        self._starts = np.searchsorted(codes // count, np.arange(count + 1))

    @property
    def degrees(self) -> IntArray:
        """[N] the number of distinct neighbours of each audited node, without the node itself."""
        return np.diff(self._starts)[self._nodes]

    def of_records(self, rows: IntArray) -> Surroundings:
        """The same edges around other audited nodes: those at these places, [N]."""
        made = copy.copy(self)
        made._nodes = self._nodes[rows]
        return made

    def neighbourhood(self, record: int, *, drawn: int = _DRAWN) -> Neighbourhood:
        """The node of a record and at most ``drawn`` neighbours, with the edges between all of them."""
        centre = int(self._nodes[record])
        around = self._of(centre)
        shown = np.concatenate([[centre], around[:drawn]])
        place = {int(node): number for number, node in enumerate(shown)}
        pairs = [
            (place[int(node)], place[int(other)])
            for node in shown
            for other in self._of(int(node))
            if int(other) in place and place[int(node)] < place[int(other)]
        ]
        return Neighbourhood(
            member=tuple(self._members[shown].tolist()),
            alike=tuple((self._labels[shown] == self._labels[centre]).tolist()),
            edges=tuple(sorted(pairs)),
            hidden=len(around) - len(shown) + 1,
        )

    def _of(self, node: int) -> IntArray:
        return self._neighbours[self._starts[node] : self._starts[node + 1]]


_SIZE, _RING = 72.0, 27.0


def neighbourhood_picture(around: Neighbourhood) -> Markup:
    """A small drawing, the node itself in the middle."""
    count = len(around.member) - 1
    turns = [2 * math.pi * number / max(1, count) - math.pi / 2 for number in range(count)]
    ring = [(_SIZE / 2 + _RING * math.cos(turn), _SIZE / 2 + _RING * math.sin(turn)) for turn in turns]
    places = [(_SIZE / 2, _SIZE / 2), *ring]
    parts = [
        element("line", x1=places[a][0], y1=places[a][1], x2=places[b][0], y2=places[b][1], css="edge")
        for a, b in around.edges
    ]
    for number, ((x, y), member, alike) in enumerate(zip(places, around.member, around.alike, strict=True)):
        size = 7.0 if number == 0 else 4.5
        css = ("node in" if member else "node out") + (" centre" if number == 0 else "")
        if alike:
            parts.append(element("circle", cx=x, cy=y, r=size, css=css))
        else:
            parts.append(element("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, css=css))
    return picture(parts, width=_SIZE, height=_SIZE, label=around.sentence(), css="ego")
