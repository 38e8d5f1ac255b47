"""The graph as the kernels see it: rows of neighbours with the members first, so that a flip is a few swaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch_geometric.data import Data

from glasshouse.arrays import I32, BoolArray, IntArray
from glasshouse.graph.models.tensor_memory import remembered
from glasshouse.graph.rule.jit import inner_kernel, kernel

__all__ = ["Graph", "arrange", "flip", "has_self_loops", "is_simple", "target_order", "whole_graph"]


class Graph(NamedTuple):
    """A symmetric graph without self-loops under one mask; n nodes, e directed edges.

    Row u is ``columns[start[u]:start[u + 1]]``; its first ``degree[u]`` entries are the members among u's neighbours.
    """

    start: IntArray  # [n + 1]
    columns: I32  # [e]
    degree: I32  # [n], members among the neighbours
    member: BoolArray  # [n]
    label: I32  # [n]


def _edge_keys(data: Data) -> IntArray:
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    return np.asarray(target * int(data.num_nodes) + source)


def is_simple(data: Data) -> bool:
    """Whether every edge exists in both directions, each once."""
    return remembered(data.edge_index, ("simple", int(data.num_nodes)), lambda: _is_simple(data))


def _is_simple(data: Data) -> bool:
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    keys = np.sort(_edge_keys(data))
    if (keys[1:] == keys[:-1]).any():
        return False
    return bool(np.array_equal(keys, np.sort(source * int(data.num_nodes) + target)))


def has_self_loops(data: Data) -> bool:
    """Whether some node is its own neighbour."""
    return bool((data.edge_index[0] == data.edge_index[1]).any())


def whole_graph(data: Data) -> Graph:
    """All edges without self-loops, with no members yet.

    Example:
        >>> import torch
        >>> path = Data(y=torch.zeros(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> whole_graph(path).columns
        array([1, 0, 2, 1], dtype=int32)
    """
    n = int(data.num_nodes)
    row, column = np.divmod(np.sort(_edge_keys(data)), n)
    row, column = row[row != column], column[row != column]
    return Graph(
        start=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64),
        columns=column.astype(np.int32),
        degree=np.zeros(n, np.int32),
        member=np.zeros(n, np.bool_),
        label=data.y.cpu().numpy().astype(np.int32).reshape(-1),
    )


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


def arrange(graph: Graph, mask: BoolArray) -> Graph:
    """A copy of the graph with the members of ``mask`` [n]; the original is not changed."""
    columns, degree = graph.columns.copy(), graph.degree.copy()
    member = np.array(mask, dtype=np.bool_)
    _members_first(graph.start, member, columns, degree)
    return graph._replace(columns=columns, degree=degree, member=member)


@inner_kernel
def flip(v: int, graph: Graph) -> None:
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


def target_order(graph: Graph, nodes: IntArray, *, pieces: int) -> list[IntArray]:
    """Positions in ``nodes``, cut into pieces of about equal work.

    Nodes that share their neighbour of highest degree are put together: they use the same rows, which stay in cache.
    """
    degree = np.diff(graph.start)
    busiest = np.full(len(degree), -1, np.int64)
    rows = np.flatnonzero(degree)
    neighbour_degree = degree[graph.columns].astype(np.int64)
    key = neighbour_degree * len(degree) + graph.columns
    busiest[rows] = np.maximum.reduceat(key, graph.start[rows]) if len(rows) else 0
    order = np.argsort(busiest[nodes], kind="stable")
    paths = np.zeros(len(degree), np.int64)
    paths[rows] = np.add.reduceat(neighbour_degree, graph.start[rows]) if len(rows) else 0
    work = np.cumsum(paths[nodes[order]] + degree[nodes[order]] + 4)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, pieces) / pieces) if len(work) else []
    return [piece for piece in np.split(order, cuts) if len(piece)]
