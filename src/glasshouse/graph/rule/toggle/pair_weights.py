"""Weights of edges by the nodes that they join; a repeated edge counts with the sum of its weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.edge_copies import EdgeCopies
from glasshouse.graph.rule.toggle.segments import lookup, segment_sum

__all__ = ["PairWeights"]


@dataclass(frozen=True, kw_only=True)
class PairWeights:
    """The weights of a graph's edges, in float64: differences of sums must not lose digits.

    Example:
        >>> copies = EdgeCopies.of(torch.tensor([[0, 0, 1], [1, 1, 1]]), 2)
        >>> weights = PairWeights.of(copies, torch.tensor([1.0, 2.0, 5.0]))
        >>> weights.between(torch.tensor([0, 1]), torch.tensor([1, 0])).tolist()
        [3.0, 0.0]
        >>> weights.loops(none=1.0).tolist()
        [1.0, 5.0]
    """

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
