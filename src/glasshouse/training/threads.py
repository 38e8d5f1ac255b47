"""How many threads to use for a small network."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

__all__ = ["fitting_threads"]

_WORTH_SHARING = 1e8  # multiplications per step; below this a second thread costs more waiting time than it saves


@contextlib.contextmanager
def fitting_threads(model: nn.Module, x: Tensor, batch_size: int) -> Iterator[None]:
    """One thread if a step is too small to share, all of them otherwise; the user's setting is restored afterwards.

    On a busy machine two threads of a small network wait for each other at every operation: a perceptron on the digits
    took 2.3 s with one thread and 33 s with two while another program was running.

    Args:
        model: the network.
        x: [N, ...] its inputs; weights that are shared over places, as in convolutions, count once per place.
        batch_size: records per step.

    Example:
        >>> with fitting_threads(nn.Linear(4, 2), torch.zeros(8, 4), 8):
        ...     torch.get_num_threads()
        1
    """
    weights = sum(parameter.numel() for parameter in model.parameters())
    work = weights * batch_size * math.prod(x.shape[2:])
    before = torch.get_num_threads()
    if work < _WORTH_SHARING and x.device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
