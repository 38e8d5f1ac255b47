"""What every toggled layer offers: a forward pass that keeps its state, and the same pass for changed rows only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph

__all__ = ["Cost", "Kept", "Layer", "LeanLayer", "Toggled", "outputs_of", "project", "under_every_mask"]

_COLUMNS = 16  # a product with fewer columns takes MKL three times as long as its transpose with as few rows


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


def project(inputs: Tensor, weight: Tensor) -> Tensor:
    """Each model's own linear map: inputs [rows, models or 1, width] by weight [models, width, out].

    Example:
        >>> project(torch.ones(4, 1, 3), torch.ones(2, 3, 5)).shape
        torch.Size([4, 2, 5])
    """
    models, width, out = weight.shape
    if inputs.shape[1] == 1:
        return (inputs[:, 0] @ weight.transpose(0, 1).reshape(width, models * out)).view(-1, models, out)
    if out < _COLUMNS and width >= 2 * _COLUMNS and not weight.is_cuda:
        return torch.bmm(weight.transpose(1, 2), inputs.permute(1, 2, 0)).permute(2, 0, 1)
    return torch.bmm(inputs.transpose(0, 1), weight).transpose(0, 1)


def under_every_mask(values: Tensor, graph: MaskedGraph) -> Tensor:
    """Values of the n nodes repeated for each mask, [N, ...]; values that already have N rows are not changed.

    Example:
        >>> from glasshouse.graph.rule.toggle.masked_graph import coalesce, mask_graph
        >>> edges = coalesce(torch.zeros(2, 0, dtype=torch.long), 3, torch.float32)
        >>> under_every_mask(torch.ones(3, 2), mask_graph(edges, torch.ones(4, 3, dtype=torch.bool))).shape
        torch.Size([12, 2])
    """
    copies = len(graph.members) // graph.size
    if copies == 1 or len(values) == len(graph.members):
        return values
    return values.repeat(copies, *[1] * (values.dim() - 1))
