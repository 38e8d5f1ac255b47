"""Several membership masks over one graph, as one disjoint union: node x under mask i has the number ``i * n + x``."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.models.tensor_memory import remembered
from glasshouse.graph.rule.toggle.edge_copies import EdgeCopies
from glasshouse.graph.rule.toggle.segments import starts_of

__all__ = ["Adjacency", "Edges", "MaskedGraph", "coalesce", "coalesced", "mask_graph"]


@dataclass(frozen=True, kw_only=True)
class Edges:
    """The distinct edges of the whole graph, without self-loops, in both orders; duplicates are counted as weights.

    Example:
        >>> edges = coalesce(torch.tensor([[0, 0, 1], [1, 1, 1]]), 2, torch.float32)
        >>> edges.weight_by_receiver, edges.loops
        (tensor([2.]), tensor([0., 1.]))
    """

    by_receiver: Tensor  # [2, edges], sorted by receiver
    by_source: Tensor  # [2, edges], sorted by source
    weight_by_receiver: Tensor  # [edges], how often each occurs
    weight_by_source: Tensor  # [edges]
    loops: Tensor  # [n], how many self-loops each node has
    copies: EdgeCopies  # all edges, duplicates and self-loops too


def coalesce(edge_index: Tensor, size: int, dtype: torch.dtype) -> Edges:
    """Sort the edges [2, edges] once for all masks; weights are of the given type.

    Example:
        >>> coalesce(torch.tensor([[1, 0], [0, 1]]), 2, torch.float32).by_source
        tensor([[0, 1],
                [1, 0]])
    """
    loop = edge_index[0] == edge_index[1]
    loops = torch.bincount(edge_index[0, loop], minlength=size).to(dtype)
    source, receiver = edge_index[:, ~loop]
    keys, count = (receiver * size + source).unique(return_counts=True)
    by_receiver = torch.stack([keys % size, keys // size])
    order = (by_receiver[0] * size + by_receiver[1]).argsort()
    weight = count.to(dtype)
    return Edges(
        by_receiver=by_receiver,
        by_source=by_receiver[:, order],
        weight_by_receiver=weight,
        weight_by_source=weight[order],
        loops=loops,
        copies=EdgeCopies.of(edge_index, size),
    )


def coalesced(edge_index: Tensor, size: int, dtype: torch.dtype) -> Edges:
    """`coalesce`, done once for all questions about a graph in one memory.

    Example:
        >>> from glasshouse.graph.models.tensor_memory import open_memory
        >>> edges = torch.tensor([[1, 0], [0, 1]])
        >>> with open_memory():
        ...     coalesced(edges, 2, torch.float32) is coalesced(edges, 2, torch.float32)
        True
    """
    return remembered(edge_index, ("coalesced", size, dtype), lambda: coalesce(edge_index, size, dtype))


@dataclass(frozen=True, kw_only=True)
class Adjacency:
    """For each node a list of other nodes: those of node x are at ``start[x] ... start[x + 1] - 1``.

    Example:
        >>> Adjacency(start=torch.tensor([0, 2, 2]), other=torch.tensor([0, 1]), weight=torch.ones(2)).count
        tensor([2, 0])
    """

    start: Tensor  # [N + 1]
    other: Tensor  # [entries]
    weight: Tensor  # [entries], how often the edge occurs

    @property
    def count(self) -> Tensor:
        """Length of each list, [N]."""
        return self.start.diff()


@dataclass(frozen=True, kw_only=True)
class MaskedGraph:
    """The union of the masks' graphs, N = masks * n nodes.

    Non-members have rows too: such a row is the one that the node would have if only it were added. Self-loops
    are kept apart because layers differ in what they do with them.

    Example:
        >>> edges = coalesce(torch.tensor([[0, 1], [1, 0]]), 2, torch.float32)
        >>> mask_graph(edges, torch.tensor([[True, False]])).sources.count
        tensor([0, 1])
    """

    size: int  # n, nodes under one mask
    members: Tensor  # bool [N]
    sources: Adjacency  # for any node: the members that send to it
    receivers: Adjacency  # for any node: the members that it sends to
    loops: Tensor  # [N], self-loops of each node
    degree: Tensor  # [N], messages from members, counted with duplicates, without self-loops
    copies: EdgeCopies  # finds the edges of the graph by their ends, for values of edges


def mask_graph(edges: Edges, masks: Tensor) -> MaskedGraph:
    """Union of the graphs under masks, bool [masks, n].

    Example:
        >>> edges = coalesce(torch.tensor([[0, 1], [1, 0]]), 2, torch.float32)
        >>> mask_graph(edges, torch.tensor([[True, False], [True, True]])).degree
        tensor([0., 1., 1., 1.])
    """
    copies, size = masks.shape
    source, receiver = edges.by_receiver
    sources = _adjacency(receiver, source, edges.weight_by_receiver, masks[:, source], nodes=size)
    source, receiver = edges.by_source
    receivers = _adjacency(source, receiver, edges.weight_by_source, masks[:, receiver], nodes=size)
    owner = torch.repeat_interleave(sources.count)
    degree = sources.weight.new_zeros(copies * size).index_add_(0, owner, sources.weight)  # whole numbers: exact
    return MaskedGraph(
        size=size,
        members=masks.reshape(-1),
        sources=sources,
        receivers=receivers,
        loops=edges.loops.repeat(copies),
        degree=degree,
        copies=edges.copies,
    )


def _adjacency(node: Tensor, other: Tensor, weight: Tensor, present: Tensor, *, nodes: int) -> Adjacency:
    """Lists of the present edges, bool [masks, edges], in the union; the edges must be sorted by node."""
    copy, edge = present.nonzero(as_tuple=True)
    return Adjacency(
        start=starts_of(copy * nodes + node[edge], present.shape[0] * nodes),
        other=copy * nodes + other[edge],
        weight=weight[edge],
    )
