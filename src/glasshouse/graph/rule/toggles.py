"""What is answered when nodes are toggled."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["Toggles"]


class Toggles(NamedTuple):
    """Answers for every model, mask and node, float64 [models, masks, nodes] each.

    Args:
        signal: S of the paper's eq. (6).
        own: its first part, the node's own loss in the graph of the mask with the node added.

    Example:
        >>> import torch
        >>> found = Toggles(signal=torch.tensor([[[2.0]]]), own=torch.tensor([[[1.5]]]))
        >>> found.signal - found.own  # what the node's presence changes for its neighbours
        tensor([[[0.5000]]])
    """

    signal: Tensor
    own: Tensor
