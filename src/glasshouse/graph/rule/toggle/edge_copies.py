"""Find the edges of a graph by their ends; an edge that is repeated is found several times."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.segments import expand

__all__ = ["EdgeCopies"]


@dataclass(frozen=True, kw_only=True)
class EdgeCopies:
    """The edges of a graph, sorted by their ends.

    Example:
        >>> copies = EdgeCopies.of(torch.tensor([[0, 0, 1], [1, 1, 0]]), 2)
        >>> number, pair = copies.between(torch.tensor([0]), torch.tensor([1]))
        >>> number.tolist(), pair.tolist()
        ([0, 1], [0, 0])
    """

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
