"""How the learning rate changes while a model is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from glasshouse.errors import InputError

__all__ = ["OneCycle", "Schedule", "following"]

Schedule = Callable[[float], float]


@dataclass(frozen=True, kw_only=True)
class OneCycle:
    """Up linearly, down along a cosine: good accuracy in few epochs (Smith and Topin, 2018).

    Args:
        warmup: share of the training with a rising rate; with 0 there is only the cosine.
        start: factor on the learning rate at the start.
        end: factor at the end.

    Example:
        >>> cycle = OneCycle(warmup=0.2)
        >>> tuple(round(cycle(done), 2) for done in (0.0, 0.1, 0.2, 0.6, 1.0))
        (0.1, 0.55, 1.0, 0.5, 0.0)
    """

    warmup: float = 0.2
    start: float = 0.1
    end: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.warmup < 1:
            raise InputError(f"warmup: {self.warmup} is not a share of the training below 1.")

    def __call__(self, done: float) -> float:
        """The factor after a share ``done`` of the training."""
        if done < self.warmup:
            return self.start + (1 - self.start) * done / self.warmup
        fallen = (1 - math.cos(math.pi * (done - self.warmup) / (1 - self.warmup))) / 2
        return 1 + (self.end - 1) * fallen


def following(
    schedule: Schedule | None, optimizer: torch.optim.Optimizer, *, steps: int
) -> torch.optim.lr_scheduler.LRScheduler | None:
    """A scheduler to be stepped after each of ``steps`` steps, or None without a schedule.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
        >>> rates = following(OneCycle(warmup=0.0), optimizer, steps=4)
        >>> found = []
        >>> for _ in range(4):
        ...     found.append(round(optimizer.param_groups[0]["lr"], 3))
        ...     optimizer.step()
        ...     rates.step()
        >>> found
        [0.4, 0.341, 0.2, 0.059]
    """
    if schedule is None:
        return None
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule(min(1.0, step / steps)))
