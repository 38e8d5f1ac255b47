"""Sums of messages that depend on sender and edge together (GINE): a toggle adds the difference of changed messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings
from glasshouse.graph.rule.toggle.layers.base import Cost, Toggled, under_every_mask
from glasshouse.graph.rule.toggle.layers.edge_values import EdgeValues, messages_of
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import expand, segment_sum, slices_within, starts_of

__all__ = ["EdgeSum"]


@dataclass(frozen=True, kw_only=True)
class EdgeSum:
    """The sum over edges of a message, made from the sender's input and what the edge gives.

    Args:
        edges: the values of edges.
        message: makes messages [messages, models, width] from both, [messages, models or 1, width] each.
        models: how many models are stacked.
        width: of the inputs, of what edges give, and of the sums.
        item: bytes of one value.

    Example:
        >>> edges = EdgeValues(values=torch.ones(7, 1, 2))
        >>> EdgeSum(edges=edges, message=torch.mul, models=3, width=2).divides_by_degree
        False
    """

    edges: EdgeValues
    message: Callable[[Tensor, Tensor], Tensor]
    models: int
    width: int
    item: int = 4
    divides_by_degree: bool = False
    counts_senders: bool = False
    hops: int = 1

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        size = self.models * self.width * self.item
        return Cost(node=2 * size, row=3 * size, path=6 * size)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptEdgeSum, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        inputs = under_every_mask(inputs, graph)
        sums = inputs.new_empty(len(inputs), self.models, self.width)
        kept = KeptEdgeSum(layer=self, graph=graph, inputs=inputs, sums=sums)
        sources = graph.sources
        for part in slices_within((sources.count + 1) * self.cost(shared=False).path, limit):
            rows = torch.arange(part.start, part.stop, device=inputs.device)
            entry, owner = expand(sources.start[rows], sources.count[rows])
            sums[part] = kept.total(inputs, sources.other[entry], sources.other[entry], owner, rows)
            looped = (graph.loops[rows] > 0).nonzero().squeeze(1)
            if len(looped):
                sums[part] += kept.total(inputs, rows[looped], rows[looped], looped, rows)
        return kept, sums.clone()


@dataclass(frozen=True, kw_only=True)
class KeptEdgeSum:
    """The inputs [N, models or 1, width] and the sums [N, models, width]."""

    layer: EdgeSum
    graph: MaskedGraph
    inputs: Tensor
    sums: Tensor

    def total(self, table: Tensor, place: Tensor, sender: Tensor, owner: Tensor, rows: Tensor) -> Tensor:
        """Sums of messages, [rows, models, width].

        Args:
            table: inputs [any, models or 1, width].
            place: where each sender's input is in it, [pairs].
            sender: sending nodes [pairs].
            owner: which of the rows each pair belongs to, ascending [pairs].
            rows: receiving nodes.
        """
        messages = messages_of(self.graph, self.layer.edges, sender, rows[owner], None)
        assert messages.edges is not None  # noqa: S101  # there are values of edges
        made = self.layer.message(table[messages.spread(place)], messages.edges)
        made = made.expand(-1, self.layer.models, -1).flatten(1)
        start = starts_of(messages.spread(owner), len(rows))
        return segment_sum(made, start).view(len(rows), self.layer.models, self.layer.width)

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        arrives = torch.ones_like(source.node, dtype=torch.bool)
        leaves = arrives.clone()
        arrives[source.centre] = ~rings.removes  # a removed target no longer sends
        leaves[source.centre] = rings.removes  # an added one did not send before
        if changed is None:  # only messages of the targets change
            still = torch.ones_like(arrives)
            still[source.centre] = False
            arrives, leaves = arrives & ~still, leaves & ~still
        fresh = self.inputs[source.node] if changed is None else changed
        receiver, sums = paths.receiver, self.sums[ball.node]
        for table, place, wanted, sign in (
            (fresh, paths.source, arrives, 1),
            (self.inputs, source.node[paths.source], leaves, -1),
        ):
            some = wanted[paths.source].nonzero().squeeze(1)
            sender = source.node[paths.source[some]]
            sums.add_(self.total(table, place[some], sender, receiver[some], ball.node), alpha=sign)
        looped = (self.graph.loops[source.node] > 0).nonzero().squeeze(1)
        if changed is not None and len(looped):
            inside, order = paths.inside[looped].sort()
            looped = looped[order]
            node = source.node[looped]
            sums += self.total(fresh, looped, node, inside, ball.node)
            sums -= self.total(self.inputs, node, node, inside, ball.node)
        return Toggled(sums)
