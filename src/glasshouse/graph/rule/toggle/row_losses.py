"""Losses of changed rows: all models at once, one label per row."""

from __future__ import annotations

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.fused.ends import row_margins
from glasshouse.losses import tensor_losses

__all__ = ["row_losses"]


def row_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each row and model, float64 [rows, models].

    Args:
        logits: [rows, models, classes].
        labels: true class of each row, [rows].

    Example:
        >>> row_losses(torch.zeros(3, 2, 4), torch.zeros(3, dtype=torch.long)).shape
        torch.Size([3, 2])
    """
    if not jit.usable(logits):
        return tensor_losses(logits, labels.unsqueeze(1))
    return torch.nn.functional.softplus(row_margins(logits, labels), threshold=40.0)  # as tensor_losses
