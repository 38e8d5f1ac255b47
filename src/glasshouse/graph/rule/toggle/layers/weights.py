"""The weights of one layer of several models, detached and in one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

__all__ = ["Dense", "batched_maps", "batched_vectors"]


def batched_maps(layers: Sequence[nn.Linear]) -> Tensor:
    """Weights of linear maps, [models, width, out].

    Example:
        >>> batched_maps([nn.Linear(2, 3), nn.Linear(2, 3)]).shape
        torch.Size([2, 2, 3])
    """
    return torch.stack([layer.weight.detach().T for layer in layers]).contiguous()


def batched_vectors(vectors: Sequence[Tensor | None]) -> Tensor | None:
    """Biases of all models, [models, out], or None if they have none.

    Example:
        >>> batched_vectors([None, None]) is None
        True
    """
    return None if vectors[0] is None else torch.stack([cast("Tensor", vector).detach() for vector in vectors])


class Dense:
    """A linear layer of each model, on rows [rows, models, width].

    Example:
        >>> Dense([nn.Linear(2, 3), nn.Linear(2, 3)])(torch.ones(5, 2, 2)).shape
        torch.Size([5, 2, 3])
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.weight, self.bias = batched_maps(layers), batched_vectors([layer.bias for layer in layers])

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows [rows, models, out]."""
        rows = torch.bmm(rows.transpose(0, 1), self.weight).transpose(0, 1)
        return rows if self.bias is None else rows + self.bias
