"""A kept maximum when some of the values under it change; the two largest are known, by multiplicity.

All values are those after a ReLU, so a missing value is the same as a 0. Each kernel writes
new maximum - old maximum into ``delta[0]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glasshouse.arrays import F32
from glasshouse.graph.rule.jit import inner_kernel
from glasshouse.graph.rule.toggle.compiled.plan import Graph

__all__ = ["appear", "leave", "replace_one", "replace_several"]

_ZERO = np.float32(0)


@inner_kernel
def appear(x: int, top: F32, value: F32, delta: F32) -> None:
    """``value[0]`` joins the values of row x."""
    for j in range(delta.shape[1]):
        delta[0, j] = max(value[0, j] - top[x, j], _ZERO)


@inner_kernel
def leave(x: int, top: F32, second: F32, value: F32, delta: F32) -> None:
    """``value[0]`` goes."""
    for j in range(delta.shape[1]):
        largest = top[x, j]
        gap = second[x, j] - largest
        delta[0, j] = gap if value[0, j] >= largest else _ZERO


@inner_kernel
def replace_one(x: int, top: F32, second: F32, old: F32, w: int, new: F32, k: int, delta: F32) -> None:
    """``old[w]`` becomes ``new[k]``."""
    for j in range(delta.shape[1]):
        largest = top[x, j]
        runner_up = second[x, j]
        others = largest if old[w, j] < largest else runner_up
        delta[0, j] = max(others, new[k, j]) - largest


@inner_kernel
def replace_several(
    with_v: bool, v: int, x: int, moved: int, graph: Graph, top: F32, second: F32, before: F32, scratch: Any
) -> None:
    """The neighbours of x in ``scratch.moved`` change, and v is added or removed if it is a neighbour."""
    delta, after = scratch.delta, scratch.after
    width = delta.shape[1]
    inside = graph.member[v]
    for j in range(width):
        own = max(scratch.own[0, j], _ZERO) if with_v else _ZERO
        delta[1, j] = _ZERO if inside else own  # the largest new value
        delta[2, j] = own if inside else _ZERO  # the largest old value
        delta[3, j] = _ZERO  # the second largest
    for i in range(moved):
        k = scratch.moved[i]
        for j in range(width):
            delta[1, j] = max(delta[1, j], after[k, j])
    if graph.degree[x] <= 2 * moved + 2:  # few neighbours are unchanged: look at each of them
        _recompute(v, x, graph, top, before, scratch)
        return
    for i in range(moved):
        w = scratch.reach.nodes[scratch.moved[i]]
        for j in range(width):
            value = before[w, j]
            delta[3, j] = max(delta[3, j], min(delta[2, j], value))
            delta[2, j] = max(delta[2, j], value)
    unknown = 0
    for j in range(width):
        largest = top[x, j]
        runner_up = second[x, j]
        unknown += delta[2, j] >= largest and delta[3, j] >= runner_up and runner_up > _ZERO
        others = largest if delta[2, j] < largest else runner_up
        delta[0, j] = max(others, delta[1, j]) - largest
    if unknown:  # both of the two largest changed, and the third was not kept
        _recompute(v, x, graph, top, before, scratch)


@inner_kernel
def _recompute(v: int, x: int, graph: Graph, top: F32, before: F32, scratch: Any) -> None:
    """The maximum of delta[1] and of all unchanged neighbours of x."""
    delta, slot, near = scratch.delta, scratch.reach.slot, scratch.reach.size[0]
    for e in range(graph.start[x], graph.start[x] + graph.degree[x]):
        w = graph.columns[e]
        k = slot[w]
        if w != v and not (0 <= k < near and scratch.changed[k]):
            for j in range(delta.shape[1]):
                delta[1, j] = max(delta[1, j], before[w, j])
    for j in range(delta.shape[1]):
        delta[0, j] = delta[1, j] - top[x, j]
