"""The largest values among a node's senders, and who sent them, so that senders can be left out exactly."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Ball, Paths
from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.fused.maxima import plain_maxima, ranked_senders
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import expand, lookup, slices_within, starts_of

__all__ = ["Largest", "bag_max", "find_largest", "largest_other", "largest_values"]


@dataclass(frozen=True, kw_only=True)
class Largest:
    """Maxima of every node's senders; ties are kept by multiplicity, so the second largest may equal the first.

    Args:
        graph: who sends to whom; a self-loop makes a node its own sender.
        value: the maxima [N, values], -inf for a node without senders.
        sender: the nodes with the largest values, in order, int32 [ranks, N, values]; -1 if there are fewer.
    """

    graph: MaskedGraph
    value: Tensor
    sender: Tensor


def find_largest(values: Tensor, graph: MaskedGraph, *, ranks: int, limit: int) -> Largest:
    """The ``ranks`` largest senders of each node, for values [N, values].

    Example:
        >>> from glasshouse.graph.rule.toggle.masked_graph import coalesce, mask_graph
        >>> edges = coalesce(torch.tensor([[0, 1], [2, 2]]), 3, torch.float32)
        >>> graph = mask_graph(edges, torch.ones(1, 3, dtype=torch.bool))
        >>> find_largest(torch.tensor([[1.0], [5.0], [9.0]]), graph, ranks=2, limit=2**20).sender[:, 2, 0]
        tensor([1, 0], dtype=torch.int32)
    """
    if jit.usable(values):
        value, sender = ranked_senders(values, graph, ranks=ranks)
        return Largest(graph=graph, value=value, sender=sender)
    count = graph.sources.count + (graph.loops > 0)
    value = values.new_full(values.shape, -torch.inf)
    sender = torch.full((ranks, *values.shape), -1, dtype=torch.int32, device=values.device)
    order = count.argsort()
    ordered = count[order]
    first, longest = int((ordered == 0).sum()), int(ordered[-1]) if len(ordered) else 0
    width = 1
    while first < len(order):  # rows with up to 1, 2, 4, 8 ... senders are padded to the same length
        last = int(torch.searchsorted(ordered, width, right=True))
        rows = order[first:last]
        bytes_each = width * values.shape[1] * (values.element_size() + 8)
        for part in slices_within(torch.full((len(rows),), bytes_each, device=rows.device), limit):
            _rank(values, graph, rows[part], min(width, longest), value, sender)
        first, width = last, 2 * width
    return Largest(graph=graph, value=value, sender=sender)


def largest_values(values: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
    """The maxima of each node's senders alone, [N, values], -inf for a node without senders.

    Example:
        >>> from glasshouse.graph.rule.toggle.masked_graph import coalesce, mask_graph
        >>> edges = coalesce(torch.tensor([[0, 1], [2, 2]]), 3, torch.float32)
        >>> graph = mask_graph(edges, torch.ones(1, 3, dtype=torch.bool))
        >>> largest_values(torch.tensor([[1.0], [5.0], [9.0]]), graph, limit=2**20)[2]
        tensor([5.])
    """
    if jit.usable(values):
        return plain_maxima(values, graph)
    return find_largest(values, graph, ranks=1, limit=limit).value


def _rank(values: Tensor, graph: MaskedGraph, rows: Tensor, width: int, value: Tensor, sender: Tensor) -> None:
    """Fill in the largest senders of rows that have at most ``width`` of them."""
    count, looped = graph.sources.count[rows].unsqueeze(1), (graph.loops[rows] > 0).unsqueeze(1)
    column = torch.arange(width, device=rows.device).unsqueeze(0)
    entry = (graph.sources.start[rows].unsqueeze(1) + column).clamp_(max=max(len(graph.sources.other) - 1, 0))
    listed = graph.sources.other[entry] if len(graph.sources.other) else entry
    who = torch.where(column < count, listed, torch.where((column == count) & looped, rows.unsqueeze(1), -1))
    seen = values[who.clamp(min=0)].masked_fill_((who < 0).unsqueeze(2), -torch.inf)  # [rows, width, values]
    for rank in range(min(len(sender), width)):
        best, position = seen.max(dim=1)
        if rank == 0:
            value[rows] = best
        sender[rank, rows] = who.gather(1, position).to(torch.int32).masked_fill_(best == -torch.inf, -1)
        if rank + 1 < min(len(sender), width):
            seen.scatter_(1, position.unsqueeze(1), -torch.inf)


def bag_max(table: Tensor, index: Tensor, paths: Paths, *, without: Tensor) -> Tensor:
    """Maxima over the paths into each outer row, [outer rows, values], -inf if there is none.

    Args:
        table: values [any, values].
        index: where each inner row's values are in the table, [inner rows].
        paths: the paths.
        without: inner rows to leave out, bool [inner rows].
    """
    start, source = paths.start, paths.source
    if bool(without.any()):
        live = ~without[source]
        start, source = starts_of(paths.receiver[live], len(start) - 1), source[live]
    if len(source) == 0:
        return table.new_full((len(start) - 1, table.shape[1]), -torch.inf)
    maxima = torch.nn.functional.embedding_bag(index[source], table, start, mode="max", include_last_offset=True)
    maxima[(start.diff() == 0).nonzero().squeeze(1)] = -torch.inf  # an empty bag gives 0
    return maxima


def largest_other(
    values: Tensor, largest: Largest, ball: Ball, source: Ball, row: Tensor, column: Tensor, *, limit: int
) -> Tensor:
    """The largest value among senders that are not in the source ball, for single entries, [entries].

    Args:
        values: the senders' values [N, values].
        largest: their ranking.
        ball: the ball whose rows receive.
        source: the ball of senders to leave out.
        row: rows of ``ball`` [entries].
        column: columns of ``values`` [entries].
        limit: bytes that temporary arrays may take.
    """
    answer = values.new_full((len(row),), -torch.inf)
    nodes = len(values)
    open_entries = torch.arange(len(row), device=row.device)
    for ranking in largest.sender:
        where, what = row[open_entries], column[open_entries]
        sender = ranking[ball.node[where], what].long()
        _, blocked = lookup(source.keys, ball.target[where] * nodes + sender)
        found = (sender >= 0) & ~blocked
        answer[open_entries[found]] = values[sender[found], what[found]]
        open_entries = open_entries[(sender >= 0) & blocked]
        if len(open_entries) == 0:
            return answer
    sources = largest.graph.sources
    senders = sources.count[ball.node[row[open_entries]]]
    for part in slices_within((senders + 1) * 64, limit):
        some = open_entries[part]
        entry, owner = expand(sources.start[ball.node[row[some]]], senders[part])
        sender, where = sources.other[entry], some[owner]
        _, blocked = lookup(source.keys, ball.target[row[where]] * nodes + sender)
        seen = values[sender, column[where]].masked_fill_(blocked, -torch.inf)
        best = values.new_full((len(some),), -torch.inf).scatter_reduce_(0, owner, seen, "amax")
        # a self-loop of a row outside the source ball is a sender too
        node = ball.node[row[some]]
        _, blocked = lookup(source.keys, ball.target[row[some]] * nodes + node)
        itself = values[node, column[some]].masked_fill_(blocked | (largest.graph.loops[node] == 0), -torch.inf)
        answer[some] = torch.maximum(best, itself)
    return answer
