"""Which rows a toggle of one node can change: members one, two and three steps away, through members only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glasshouse.arrays import I32, BoolArray, IntArray
from glasshouse.graph.rule.jit import inner_kernel, kernel
from glasshouse.graph.rule.toggle.compiled.plan import Graph

__all__ = ["Reach", "find_one_hop", "find_two_hops", "grow", "grow_from", "new_reach", "release"]


class Reach(NamedTuple):
    """The neighbourhood of the node being toggled, nearest first, without the node itself."""

    nodes: I32  # [n], the first size[h] of them lie within h + 1 steps
    slot: I32  # [n], a node's position in ``nodes``; -1 outside, -2 for the toggled node
    size: IntArray  # [3]


def new_reach(n: int) -> Reach:
    """Scratch space for one thread on a graph of n nodes."""
    return Reach(nodes=np.zeros(n, np.int32), slot=np.full(n, -1, np.int32), size=np.zeros(3, np.int64))


@inner_kernel
def _append_neighbours(i: int, size: int, graph: Graph, reach: Reach) -> int:
    """Append the members next to the i-th node that are not there yet, and say how many nodes there are now."""
    u = reach.nodes[i]
    for e in range(graph.start[u], graph.start[u] + graph.degree[u]):
        w = graph.columns[e]
        if reach.slot[w] == -1:
            reach.slot[w] = size
            reach.nodes[size] = w
            size += 1
    return size


@inner_kernel
def grow(ring: int, graph: Graph, reach: Reach) -> None:
    """Append the members next to those of the ring before."""
    first = reach.size[ring - 2] if ring > 1 else 0
    size = reach.size[ring - 1]
    for i in range(first, reach.size[ring - 1]):
        size = _append_neighbours(i, size, graph, reach)
    reach.size[ring] = size


@kernel
def find_one_hop(v: int, graph: Graph, reach: Reach) -> None:
    """Fill the first ring around v; the others are empty until they are filled. ``release`` must follow."""
    reach.slot[v] = -2
    size = 0
    for e in range(graph.start[v], graph.start[v] + graph.degree[v]):
        u = graph.columns[e]
        reach.slot[u] = size
        reach.nodes[size] = u
        size += 1
    for ring in range(len(reach.size)):
        reach.size[ring] = size


@kernel
def find_two_hops(v: int, graph: Graph, reach: Reach) -> None:
    """Fill the first two rings around v. ``release`` must follow before the next node."""
    find_one_hop(v, graph, reach)
    grow(1, graph, reach)
    reach.size[2] = reach.size[1]


@inner_kernel
def grow_from(changed: BoolArray, graph: Graph, reach: Reach) -> None:
    """Fill the second ring with the members next to those of the first that change, [ring 1] by slot."""
    size = reach.size[0]
    for i in range(reach.size[0]):
        if changed[i]:
            size = _append_neighbours(i, size, graph, reach)
    reach.size[1] = size
    reach.size[2] = size


@kernel
def release(v: int, reach: Reach) -> None:
    """Clear the neighbourhood of v, in time proportional to its size."""
    reach.slot[v] = -1
    for i in range(reach.size[2]):
        reach.slot[reach.nodes[i]] = -1
