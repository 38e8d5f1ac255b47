"""From logits to losses: for numpy arrays and for torch tensors, by one formula.

The loss is softplus of the negative margin: the log-sum-exp of the other logits minus the logit of the true class.
Attacks use this loss, so it keeps the digits of a confident answer: a confidence of 1 - 1e-40 gives 1e-40, where the
usual log-softmax gives 0. The kernels in ``graph/rule/two_layers/rows.py`` compute the same in float32.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from glasshouse.arrays import FloatArray, IntArray
from glasshouse.numerics import margin_to_loss

__all__ = ["losses_from_logits", "tensor_losses"]


def losses_from_logits(logits: ArrayLike, labels: IntArray, *, temperature: float = 1.0) -> FloatArray:
    """Cross-entropy of each record, float64 [N].

    Args:
        logits: [N, C], C >= 2; one-logit binary models are widened to [0, z] before they come here.
        labels: [N], the columns of the true classes.
        temperature: logits are divided by it first.

    Example:
        >>> losses_from_logits([[100.0, 0.0], [0.0, 0.0]], np.array([0, 1]))
        array([3.72007598e-44, 6.93147181e-01])
    """
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    rows = np.arange(len(scaled))
    own = scaled[rows, labels]
    scaled[rows, labels] = -np.inf
    largest = scaled.max(axis=1)
    others = largest + np.log(np.exp(scaled - largest[:, None]).sum(axis=1))
    return margin_to_loss(own - others)


def tensor_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The same on the tensors' own device, float64 [...], from logits [..., C] and labels [...].

    Example:
        >>> tensor_losses(torch.tensor([[40.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 0]))
        tensor([4.2484e-18, 6.9315e-01], dtype=torch.float64)
    """
    # the classes come first: sums over a last dimension of a few entries would leave most of a core idle
    others = logits.movedim(-1, 0).to(torch.float64, memory_format=torch.contiguous_format, copy=True)
    own_row = labels.expand(logits.shape[:-1]).unsqueeze(0)
    own = others.gather(0, own_row)[0]
    others.scatter_(0, own_row, -torch.inf)
    top = others.amax(0)
    top.masked_fill_(top.isinf(), 0.0)  # as logsumexp does: infinity less infinity is no number
    margin = others.sub_(top).exp_().sum(0).log_().add_(top).sub_(own)
    # threshold: above it softplus(x) is taken as x; 40 keeps float64 exact, torch's default of 20 does not
    return torch.nn.functional.softplus(margin, threshold=40.0)
