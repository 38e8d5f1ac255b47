"""Several membership masks over one graph, as one disjoint union: node x under mask i has the number ``i * n + x``.

Edges and their weights are found by the nodes that they join; an edge may be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.models.tensor_cache import remembered
from glasshouse.graph.rule.incremental.segments import expand, lookup, segment_sum, starts_of


@dataclass(frozen=True, kw_only=True)
class EdgeCopies:
    """The edges of a graph, sorted by their ends."""

    size: int  # n
    pairs: Tensor  # [edges], receiver * n + source, ascending
    number: Tensor  # [edges], the edge of each pair

    @classmethod
    def of(cls, edge_index: Tensor, size: int) -> EdgeCopies:
        """The edges [2, edges] between ``size`` nodes, sorted once."""
        source, receiver = edge_index
        pairs, number = (receiver * size + source).sort(stable=True)
        return cls(size=size, pairs=pairs, number=number)

    def between(self, source: Tensor, receiver: Tensor) -> tuple[Tensor, Tensor]:
        """The edges of given pairs of nodes [pairs], one after another, and which pair each belongs to."""
        wanted = receiver * self.size + source
        start = torch.searchsorted(self.pairs, wanted)
        place, pair = expand(start, torch.searchsorted(self.pairs, wanted, right=True) - start)
        return self.number[place], pair


@dataclass(frozen=True, kw_only=True)
class Edges:
    """The distinct edges of the whole graph, without self-loops, in both orders; duplicates are counted as weights."""

    by_receiver: Tensor  # [2, edges], sorted by receiver
    by_source: Tensor  # [2, edges], sorted by source
    weight_by_receiver: Tensor  # [edges], how often each occurs
    weight_by_source: Tensor  # [edges]
    loops: Tensor  # [n], how many self-loops each node has
    copies: EdgeCopies  # all edges, duplicates and self-loops too


def coalesce(edge_index: Tensor, size: int, dtype: torch.dtype) -> Edges:
    """Sort the edges [2, edges] once for all masks; weights are of the given type."""
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
    """`coalesce`, done once for all questions about a graph in one memory."""
    return remembered(edge_index, ("coalesced", size, dtype), lambda: coalesce(edge_index, size, dtype))


@dataclass(frozen=True, kw_only=True)
class Adjacency:
    """For each node a list of other nodes: those of node x are at ``start[x] ... start[x + 1] - 1``."""

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
    """

    size: int  # n, nodes under one mask
    members: Tensor  # bool [N]
    sources: Adjacency  # for any node: the members that send to it
    receivers: Adjacency  # for any node: the members that it sends to
    loops: Tensor  # [N], self-loops of each node
    degree: Tensor  # [N], messages from members, counted with duplicates, without self-loops
    copies: EdgeCopies  # finds the edges of the graph by their ends, for values of edges

    def edges_between(self, source: Tensor, receiver: Tensor) -> tuple[Tensor, Tensor]:
        """The graph's edges of pairs of nodes of the union [pairs], and which pair each belongs to."""
        return self.copies.between(source % self.size, receiver % self.size)


def mask_graph(edges: Edges, masks: Tensor) -> MaskedGraph:
    """Union of the graphs under masks, bool [masks, n]."""
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


@dataclass(frozen=True, kw_only=True)
class PairWeights:
    """The weights of a graph's edges, in float64: differences of sums must not lose digits."""

    size: int  # n
    keys: Tensor  # [pairs], receiver * n + source, ascending
    total: Tensor  # [pairs], over all edges of the pair
    last: Tensor  # [pairs], of the last one

    @classmethod
    def of(cls, copies: EdgeCopies, weight: Tensor) -> PairWeights:
        """From one weight per edge, [edges]."""
        ordered = weight[copies.number].double()
        keys, count = torch.unique_consecutive(copies.pairs, return_counts=True)
        end = count.cumsum(0)
        start = torch.cat([end.new_zeros(1), end])
        total = segment_sum(ordered.unsqueeze(1), start).squeeze(1)
        return cls(size=copies.size, keys=keys, total=total, last=ordered[end - 1])

    def between(self, source: Tensor, receiver: Tensor) -> Tensor:
        """The weights of pairs of nodes [pairs], float64; 0 where no edge joins them."""
        place, found = lookup(self.keys, receiver * self.size + source)
        return self.total[place] * found if len(self.keys) else torch.zeros_like(source, dtype=torch.float64)

    def loops(self, *, none: float | None = None) -> Tensor:
        """The weight of each node's self-loops, [n]: their sum, or the last one with ``none`` where there is none.

        The latter is what ``torch_geometric.utils.add_remaining_self_loops`` does.
        """
        node = torch.arange(self.size, device=self.keys.device)
        if len(self.keys) == 0:
            return torch.full_like(node, none or 0.0, dtype=torch.float64)
        place, found = lookup(self.keys, node * (self.size + 1))
        if none is None:
            return self.total[place] * found
        return torch.where(found, self.last[place], none)
