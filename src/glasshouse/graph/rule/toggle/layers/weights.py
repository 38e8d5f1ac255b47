"""The weights of one layer of several models, detached and in one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

__all__ = ["batched_maps", "batched_vectors"]


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
