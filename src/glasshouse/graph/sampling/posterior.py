"""A node's log-odds of membership by the Bayes-optimal rule (paper, Definition 2): the one place of the formula.

``-S - log mean exp(-S_k)``, where S is the target's signal and S_k that of shadow model k; the prior is added to it.
G-BASE and stacking use it for all nodes at once, chains for one node or one sum at a time, in a kernel.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import log_mean_exp
from glasshouse.graph.rule.two_layers.kernels import kernel

Prior = float | FloatArray | Tensor
Signals = TypeVar("Signals", FloatArray, Tensor)


def log_odds(target: Signals, shadows: Signals, usable: BoolArray | Tensor | None = None) -> Signals:
    """Log-odds [n] of membership, without the prior, from S or losses of the target [n] and the shadow models [K, n].

    Only ``usable`` shadow models, bool [K, n], are compared with, at least one for each node; all by default. Tensors
    may have further axes.

    Example:
        >>> log_odds(np.array([1.0]), np.array([[2.0], [9.0]]), np.array([[True], [False]]))
        array([1.])
    """
    if isinstance(target, Tensor):
        counted = torch.ones_like(shadows, dtype=torch.bool) if usable is None else torch.as_tensor(usable)
        count = counted.sum(0, dtype=target.dtype)  # the logarithm of whole numbers would be a float32
        return -target - (-shadows).masked_fill(~counted, -torch.inf).logsumexp(0) + count.log()
    return np.asarray(-target - log_mean_exp(-shadows, where=None if usable is None else np.asarray(usable)))


@kernel
def log_ratio(losses: FloatArray, usable: BoolArray) -> float:
    """`log_odds` of one node, or of sums over nodes: losses [1 + K] of the target and all shadow models, usable [K]."""
    lowest = np.inf
    count = 0
    for k in range(len(usable)):
        if usable[k]:
            lowest = min(lowest, losses[k + 1])
            count += 1
    total = 0.0
    for k in range(len(usable)):
        if usable[k]:
            total += np.exp(lowest - losses[k + 1])
    return float(lowest - losses[0] - np.log(total / count))


@kernel
def membership_probability(signal: FloatArray, prior_logit: float, usable: BoolArray) -> float:
    """The conditional of one indicator given all others, from S of the target and of the shadow models [1 + K].

    ``usable`` [K] marks the shadow models that are used: all of them online, those not trained on the node offline.
    """
    return float(1.0 / (1.0 + np.exp(-log_ratio(signal, usable) - prior_logit)))


def prior_logits(prior: Prior, n: int) -> FloatArray:
    """log(λ / (1 - λ)) of each node, [n], from one λ or one per node."""
    share = np.broadcast_to(np.asarray(prior, dtype=np.float64), (n,))
    if not ((share >= 0) & (share <= 1)).all():
        raise InputError("prior: a share of members lies between 0 and 1.")
    with np.errstate(divide="ignore"):
        return np.log(share) - np.log1p(-share)
