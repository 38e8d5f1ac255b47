"""From logits to losses without losing the digits of a confident prediction."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["losses"]


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each row in float64, [...], from logits [..., classes] and labels [...].

    Taken from the margin (own logit against the log-sum-exp of the others), so that a confidence of 1 - 1e-12
    still has a loss of 1e-12 where the usual log-softmax would round it to 0.

    Example:
        >>> losses(torch.tensor([[40.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 0]))
        tensor([4.2484e-18, 6.9315e-01], dtype=torch.float64)
    """
    logits = logits.double()
    own_column = labels.unsqueeze(-1).expand(*logits.shape[:-1], 1)
    own = logits.gather(-1, own_column)
    others = logits.scatter(-1, own_column, -torch.inf)
    # threshold: above it softplus(x) is taken as x; 40 keeps float64 exact, torch's own 20 does not
    return torch.nn.functional.softplus((others.logsumexp(-1, keepdim=True) - own).squeeze(-1), threshold=40.0)
