"""What every toggled layer offers: a forward pass that keeps its state, and the same pass for changed rows only.

Values of edges that layers read are found by the ends of an edge, and mapped when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Rings
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.segments import segment_sum, starts_of


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Memory that a layer needs, in bytes; the plan splits the work by it.

    Example:
        >>> Cost(node=10, row=20, path=30).node
        10
    """

    node: int  # kept for each node and mask
    row: int  # while working, for each changed row
    path: int  # while working, for each path into a changed row


class Toggled(NamedTuple):
    """A layer's new outputs [rows, models, width], and which rows differ from the kept ones; None if all may differ."""

    values: Tensor
    alive: Tensor | None = None


class Kept(Protocol):
    """The state of one layer after the forward pass under a group of masks."""

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """New outputs of ball ``outer`` from new inputs of ball ``inner``.

        Args:
            changed: new inputs [inner rows, models, width]; None if the inputs do not change (first layer).
            rings: balls and paths.
            inner: which ball holds the changed inputs.
            outer: which ball's outputs are wanted.
        """


class Layer(Protocol):
    """One convolution of all models, their weights stacked."""

    @property
    def width(self) -> int:
        """Columns of its output, of one model."""

    @property
    def hops(self) -> int:
        """Steps along the edges that it takes."""

    @property
    def counts_senders(self) -> bool:
        """Whether an output depends on how many senders a node has, so that rows with the same inputs change."""

    @property
    def divides_by_degree(self) -> bool:
        """Whether a message depends on its sender's degree, so that a toggle reaches one hop further."""

    def cost(self, *, shared: bool) -> Cost:
        """Memory that it takes; ``shared`` for a first layer, whose inputs are the same for all models."""

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[Kept, Tensor]:
        """Forward pass under all masks: the state and the outputs [N, models, width].

        Args:
            inputs: [N, models, width], or the features themselves [n, 1, width].
            graph: the union of the masks' graphs.
            limit: bytes that temporary arrays may take.
        """


@runtime_checkable
class LeanLayer(Protocol):
    """A layer whose outputs take much less work than the state that toggles need."""

    def outputs(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
        """The outputs of `Layer.keep` alone, [N, models, width]."""


def outputs_of(layer: Layer, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
    """A layer's outputs under all masks, [N, models, width], where nothing is toggled; arguments as of `Layer.keep`."""
    if isinstance(layer, LeanLayer):
        return layer.outputs(inputs, graph, limit=limit)
    return layer.keep(inputs, graph, limit=limit)[1]


def under_every_mask(values: Tensor, graph: MaskedGraph) -> Tensor:
    """Values of the n nodes repeated for each mask, [N, ...]; values that already have N rows are not changed.

    Example:
        >>> import torch
        >>> from glasshouse.graph.rule.incremental.graph import coalesce, mask_graph
        >>> edges = coalesce(torch.zeros(2, 0, dtype=torch.long), 3, torch.float32)
        >>> under_every_mask(torch.ones(3, 2), mask_graph(edges, torch.ones(4, 3, dtype=torch.bool))).shape
        torch.Size([12, 2])
    """
    copies = len(graph.members) // graph.size
    if copies == 1 or len(values) == len(graph.members):
        return values
    return values.repeat(copies, *[1] * (values.dim() - 1))


@dataclass(frozen=True, kw_only=True)
class EdgeValues:
    """Features of the edges, and what each model makes of them.

    Args:
        values: [edges, models or 1, width].
        map: from features [some, models or 1, width] to what is used; None if they are used as they are.

    Example:
        >>> import torch
        >>> EdgeValues(values=torch.ones(7, 1, 2), map=torch.neg).of(torch.tensor([0, 4])).shape
        torch.Size([2, 1, 2])
    """

    values: Tensor
    map: Callable[[Tensor], Tensor] | None = None

    def of(self, number: Tensor) -> Tensor:
        """What edges [some] give, [some, models or 1, out]."""
        return self.made(self.values[number])

    def made(self, values: Tensor) -> Tensor:
        """Features [some, models or 1, width] as they are used."""
        return values if self.map is None else self.map(values)


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
