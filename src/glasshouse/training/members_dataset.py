"""The members as a torch Dataset, for trainers of other libraries, and a look at what their module answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from glasshouse.population import Population, select
from glasshouse.training.batches import logits_of
from glasshouse.training.inputs import Inputs, called, first_tensor, moved, rows_of

__all__ = ["MembersDataset", "check_logits"]

_LOOK = 8  # records that show what a module answers with


class MembersDataset(Dataset[Any]):
    """Records in memory. A data loader asks for a whole batch at once, as pairs of features and labels.

    Args:
        x: [N, ...] features: a tensor, or a dict of tensors.
        y: [N] labels.

    Example:
        >>> records = MembersDataset(torch.eye(3), torch.arange(3))
        >>> records.__getitems__([2, 0])[1]
        tensor([2, 0])
    """

    def __init__(self, x: Inputs, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, row: int) -> tuple[Any, Tensor]:
        return rows_of(self.x, row), self.y[row]  # type: ignore[arg-type]

    def __getitems__(self, rows: list[int]) -> tuple[Inputs, Tensor]:
        """A batch: features [B, ...] and labels [B]."""
        some = torch.tensor(rows)
        return rows_of(self.x, some), self.y[some]


def check_logits(model: nn.Module, read: Callable[[Any], Inputs], population: Population) -> None:
    """Refuse a module whose ``forward`` does not give logits for the population's classes, before it is trained.

    Example:
        >>> from glasshouse.training.inputs import reader_for
        >>> population = Population(np.eye(3), ["a", "b", "c"])
        >>> model = nn.Linear(3, 2)
        >>> check_logits(model, reader_for(model, population.x), population)
        Traceback (most recent call last):
        glasshouse.errors.InputError: module: it gives 2 logits, but there are 3 classes; give one per class.
    """
    few = read(select(population.x, np.arange(min(_LOOK, len(population)))))
    weights = next(model.parameters(), None)
    few = moved(few, "cpu" if weights is None else weights.device)
    logits_of(model, first_tensor(few), classes=len(population.classes), call=lambda module: called(module, few))
