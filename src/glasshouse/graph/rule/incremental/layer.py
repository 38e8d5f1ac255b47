"""What every toggled layer offers: a forward pass that keeps its state, and the same pass for changed rows only."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph


class Cost(NamedTuple):
    """Memory that a layer needs, in bytes; the plan splits the work by it."""

    node: int  # kept for each node and mask
    row: int  # while working, for each changed row
    path: int  # while working, for each path into a changed row


class Toggled(NamedTuple):
    """A layer's new outputs [rows, models, width], and which rows differ from the kept ones; None if all may differ."""

    values: Tensor
    alive: Tensor | None = None


class Kept(Protocol):
    """The state of one layer after the forward pass under a group of masks."""

    def toggle(self, changed: Tensor | None, step: Step) -> Toggled:
        """New outputs of the step's ball from new inputs of its source ball.

        Args:
            changed: new inputs [inner rows, models, width]; None if the inputs do not change (first layer).
            step: balls and paths.
        """


class Layer(ABC):
    """One convolution of all models, their weights stacked."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of its output, of one model."""

    @property
    def hops(self) -> int:
        """Steps along the edges that it takes."""
        return 1

    @property
    def counts_senders(self) -> bool:
        """Whether an output depends on how many senders a node has, so that rows with the same inputs change."""
        return False

    @property
    def divides_by_degree(self) -> bool:
        """Whether a message depends on its sender's degree, so that a toggle reaches one hop further."""
        return False

    def deciding(self, *, shared: bool) -> float:
        """How many of a node's senders decide its output, at most; a change of the others changes nothing."""
        return math.inf

    @abstractmethod
    def cost(self, *, shared: bool) -> Cost:
        """Memory that it takes; ``shared`` for a first layer, whose inputs are the same for all models."""

    @abstractmethod
    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[Kept, Tensor]:
        """Forward pass under all masks: the state and the outputs [N, models, width].

        Args:
            inputs: [N, models, width], or the features themselves [n, 1, width].
            graph: the union of the masks' graphs.
            limit: bytes that temporary arrays may take.
        """

    def outputs(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
        """The outputs of `keep` alone, where nothing is toggled; a layer may have a way with less work."""
        return self.keep(inputs, graph, limit=limit)[1]


def under_every_mask(values: Tensor, graph: MaskedGraph) -> Tensor:
    """Values of the n nodes repeated for each mask, [N, ...]; values that already have N rows are not changed."""
    copies = len(graph.members) // graph.size
    if copies == 1 or len(values) == len(graph.members):
        return values
    return values.repeat(copies, *[1] * (values.dim() - 1))
