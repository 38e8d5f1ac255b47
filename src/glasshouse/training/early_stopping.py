"""When to end training before the last epoch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.population import Population, select
from glasshouse.randomness import generator
from glasshouse.training.inputs import Inputs, called, moved, rows_of
from glasshouse.training.objective import labels_of, loss_for

__all__ = ["EarlyStopping", "Stopper"]


@dataclass(frozen=True, kw_only=True)
class EarlyStopping:
    """Stop when the loss on held-out records has not improved for ``patience`` epochs; keep the best weights.

    The held-out records are drawn from the non-members, so that every member is trained on.

    Example:
        >>> EarlyStopping(patience=5).records
        1000
    """

    patience: int = 10
    records: int = 1000


class Stopper:
    """Follows the loss on held-out non-members and remembers the best weights."""

    def __init__(
        self,
        rule: EarlyStopping,
        population: Population,
        members: BoolArray,
        seed: int,
        device: torch.device,
        inputs: Callable[[Any], Inputs],  # from features to what the module takes
        read: Callable[[Any], Tensor],  # from what the module returns to logits
    ) -> None:
        outside = np.flatnonzero(~members)
        if not len(outside):
            raise InputError("early_stopping: every record is a member, so none is left to measure; leave it out.")
        held = generator(seed, "early stopping").permutation(outside)[: rule.records]
        self.x = moved(inputs(select(population.x, held)), device)
        self.y = labels_of(population)[torch.from_numpy(held)].to(device)
        self.loss_of = loss_for(population)
        self.read = read
        self.patience = rule.patience
        self.best = float("inf")
        self.best_state: dict[str, Any] | None = None
        self.waited = 0

    @torch.no_grad()
    def has_enough(self, model: nn.Module) -> bool:
        """Whether to stop, from the model after an epoch."""
        model.eval()
        total = 0.0
        for start in range(0, len(self.y), 1024):
            part = slice(start, start + 1024)
            answer = self.read(called(model, rows_of(self.x, part)))
            total += float(self.loss_of(answer, self.y[part])) * len(self.y[part])
        loss = total / len(self.y)
        if loss < self.best:
            self.best, self.waited = loss, 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Put the best weights back."""
        if self.best_state is not None:
            model.load_state_dict(self.best_state)
