"""The graph as the kernels see it: rows of neighbours with the members first, so that a flip is a few swaps.

Which rows a toggle can change: members one, two and three steps away, through members only. Threads share out serial
kernels; each thread has its own working space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch_geometric.data import Data

from glasshouse.core.arrays import I32, BoolArray, IntArray
from glasshouse.graph.models.tensor_cache import remembered
from glasshouse.graph.rule.two_layers.kernels import inner_kernel, kernel


class CSR(NamedTuple):
    """A symmetric graph without self-loops under one mask; n nodes, e directed edges.

    Row u is ``columns[start[u]:start[u + 1]]``; its first ``degree[u]`` entries are the members among u's neighbours.
    """

    start: IntArray  # [n + 1]
    columns: I32  # [e]
    degree: I32  # [n], members among the neighbours
    member: BoolArray  # [n]
    label: I32  # [n]


def _edge_keys(data: Data) -> tuple[IntArray, IntArray]:
    """A number for each edge and for the one back, ascending."""
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    n = int(data.num_nodes)
    return np.sort(target * n + source), np.sort(source * n + target)


def is_simple(data: Data) -> bool:
    """Whether every edge exists in both directions, each once."""

    def found() -> bool:
        there, back = _edge_keys(data)
        return bool((there[1:] != there[:-1]).all() and np.array_equal(there, back))

    return remembered(data.edge_index, ("simple", int(data.num_nodes)), found)


def has_self_loops(data: Data) -> bool:
    """Whether some node is its own neighbour."""
    return bool((data.edge_index[0] == data.edge_index[1]).any())


def whole_graph(data: Data) -> CSR:
    """All edges without self-loops, with no members yet."""
    n = int(data.num_nodes)
    row, column = np.divmod(_edge_keys(data)[0], n)
    row, column = row[row != column], column[row != column]
    return CSR(
        start=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64),
        columns=column.astype(np.int32),
        degree=np.zeros(n, np.int32),
        member=np.zeros(n, np.bool_),
        label=data.y.cpu().numpy().astype(np.int32).reshape(-1),
    )


def neighbours_together(graph: CSR) -> IntArray:
    """The place of each node [n] in an order in which neighbours are near each other."""
    ones = np.ones(len(graph.columns), np.int8)
    matrix = csr_array((ones, graph.columns, graph.start), shape=(len(graph.member), len(graph.member)))
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


@kernel
def _members_first(start: IntArray, member: BoolArray, columns: I32, degree: I32) -> None:
    for u in range(len(degree)):
        front = start[u]
        for e in range(start[u], start[u + 1]):
            w = columns[e]
            if member[w]:
                columns[e] = columns[front]
                columns[front] = w
                front += 1
        degree[u] = front - start[u]


def arrange(graph: CSR, mask: BoolArray) -> CSR:
    """A copy of the graph with the members of ``mask`` [n]; the original is not changed."""
    columns, degree = graph.columns.copy(), graph.degree.copy()
    member = np.array(mask, dtype=np.bool_)
    _members_first(graph.start, member, columns, degree)
    return graph._replace(columns=columns, degree=degree, member=member)


@inner_kernel
def flip(v: int, graph: CSR) -> None:
    """Move v into the members, or out of them, in place."""
    start, columns, degree = graph.start, graph.columns, graph.degree
    joins = not graph.member[v]
    graph.member[v] = joins
    for e in range(start[v], start[v + 1]):
        u = columns[e]
        # The border between members and others in row u moves by one, and v swaps with the node at the border.
        border = start[u] + degree[u] - (0 if joins else 1)
        place = border if joins else start[u]
        while columns[place] != v:
            place += 1
        columns[place] = columns[border]
        columns[border] = v
        degree[u] += 1 if joins else -1


class Reach(NamedTuple):
    """The neighbourhood of the node being toggled, nearest first, without the node itself."""

    nodes: I32  # [n], the first size[h] of them lie within h + 1 steps
    slot: I32  # [n], a node's position in ``nodes``; -1 outside, -2 for the toggled node
    size: IntArray  # [3]


def new_reach(n: int) -> Reach:
    """Scratch space for one thread on a graph of n nodes."""
    return Reach(nodes=np.zeros(n, np.int32), slot=np.full(n, -1, np.int32), size=np.zeros(3, np.int64))


@inner_kernel
def _append_neighbours(u: int, size: int, graph: CSR, reach: Reach) -> int:
    """Append the members next to u that are not there yet, and say how many nodes there are now."""
    for e in range(graph.start[u], graph.start[u] + graph.degree[u]):
        w = graph.columns[e]
        if reach.slot[w] == -1:
            reach.slot[w] = size
            reach.nodes[size] = w
            size += 1
    return size


@inner_kernel
def grow(ring: int, graph: CSR, reach: Reach) -> None:
    """Append the members next to those of the ring before."""
    first = reach.size[ring - 2] if ring > 1 else 0
    size = reach.size[ring - 1]
    for i in range(first, reach.size[ring - 1]):
        size = _append_neighbours(reach.nodes[i], size, graph, reach)
    reach.size[ring] = size


@kernel
def find_one_hop(v: int, graph: CSR, reach: Reach) -> None:
    """Fill the first ring around v; the others are empty until they are filled. ``release`` must follow."""
    reach.slot[v] = -2
    size = _append_neighbours(v, 0, graph, reach)
    for ring in range(len(reach.size)):
        reach.size[ring] = size


@kernel
def find_two_hops(v: int, graph: CSR, reach: Reach) -> None:
    """Fill the first two rings around v. ``release`` must follow before the next node."""
    find_one_hop(v, graph, reach)
    grow(1, graph, reach)
    reach.size[2] = reach.size[1]


@inner_kernel
def grow_from(changed: BoolArray, graph: CSR, reach: Reach) -> None:
    """Fill the second ring with the members next to those of the first that change, [ring 1] by slot."""
    size = reach.size[0]
    for i in range(reach.size[0]):
        if changed[i]:
            size = _append_neighbours(reach.nodes[i], size, graph, reach)
    reach.size[1] = size
    reach.size[2] = size


@kernel
def release(v: int, reach: Reach) -> None:
    """Clear the neighbourhood of v, in time proportional to its size."""
    reach.slot[v] = -1
    for i in range(reach.size[2]):
        reach.slot[reach.nodes[i]] = -1


Piece = TypeVar("Piece")
Space = TypeVar("Space")


def even_cuts(n: int, pieces: int) -> list[tuple[int, int]]:
    """The numbers below n as ranges of about equal length."""
    cuts = np.linspace(0, n, min(pieces, max(n, 1)) + 1).astype(int).tolist()
    return list(pairwise(cuts))


@dataclass(frozen=True, kw_only=True)
class Workers(Generic[Space]):
    """A pool of threads and a working space for each of them."""

    pool: ThreadPoolExecutor
    spaces: SimpleQueue[Space]

    def each(self, work: Callable[[Space, Piece], None], pieces: Iterable[Piece]) -> None:
        """Do the work for every piece, in any order; a piece uses a space that no other piece uses at the same time."""

        def borrow(piece: Piece) -> None:
            space = self.spaces.get()
            try:
                work(space, piece)
            finally:
                self.spaces.put(space)

        for _ in self.pool.map(borrow, pieces):
            pass


@contextmanager
def open_workers(threads: int, new_space: Callable[[], Space]) -> Iterator[Workers[Space]]:
    """Threads that end with the block, each with its own space."""
    spaces: SimpleQueue[Space] = SimpleQueue()
    for _ in range(threads):
        spaces.put(new_space())
    with ThreadPoolExecutor(threads) as pool:
        yield Workers(pool=pool, spaces=spaces)
