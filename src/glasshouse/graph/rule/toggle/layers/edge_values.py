"""Values of edges that layers read: found by the ends of an edge, and mapped when they are needed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from glasshouse.graph.rule.toggle.layers.base import project
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import segment_sum, starts_of

__all__ = ["EdgeValues", "Messages", "messages_of", "summed_features"]


@dataclass(frozen=True, kw_only=True)
class EdgeValues:
    """Features of the edges, and the linear map that each model applies to them.

    Args:
        values: [edges, models or 1, width].
        weight: [models, width, out], or None if they are used as they are.
        bias: [models, out] or None.

    Example:
        >>> import torch
        >>> EdgeValues(values=torch.ones(7, 1, 2), weight=torch.ones(3, 2, 5)).of(torch.tensor([0, 4])).shape
        torch.Size([2, 3, 5])
    """

    values: Tensor
    weight: Tensor | None = None
    bias: Tensor | None = None

    def of(self, number: Tensor) -> Tensor:
        """What edges [some] give, [some, models or 1, out]."""
        return self.map(self.values[number])

    def map(self, values: Tensor) -> Tensor:
        """Features [some, models or 1, width] as they are used, [some, models or 1, out]."""
        made = values if self.weight is None else project(values, self.weight)
        return made if self.bias is None else made + self.bias


@dataclass(frozen=True, kw_only=True)
class Messages:
    """Edges between pairs of nodes; a repeated edge is several messages if edges have values, else it is counted.

    Args:
        pair: which pair each message belongs to, ascending [messages]; None if each pair is one message.
        times: how often each message counts, [messages], or None for once.
        edges: what the edges give, [messages, models or 1, out], or None.
    """

    pair: Tensor | None
    times: Tensor | None
    edges: Tensor | None

    def spread(self, values: Tensor) -> Tensor:
        """Values of pairs [pairs, ...] for each message."""
        return values if self.pair is None else values[self.pair]


def messages_of(
    graph: MaskedGraph, edges: EdgeValues | None, source: Tensor, receiver: Tensor, times: Tensor | None
) -> Messages:
    """The messages between pairs of nodes of the union [pairs], of which ``times`` says how many edges they have."""
    if edges is None:
        return Messages(pair=None, times=times, edges=None)
    number, pair = graph.copies.between(source % graph.size, receiver % graph.size)
    return Messages(pair=pair, times=None, edges=edges.of(number))


def summed_features(
    edges: EdgeValues, graph: MaskedGraph, source: Tensor, receiver: Tensor, owner: Tensor, rows: int
) -> Tensor:
    """Sums of the features of all edges between pairs of nodes, by owner (ascending), float64 [rows, ...]."""
    number, pair = graph.copies.between(source % graph.size, receiver % graph.size)
    values = edges.values[number].double()
    return segment_sum(values.flatten(1), starts_of(owner[pair], rows)).view(rows, *values.shape[1:])
