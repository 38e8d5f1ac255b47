"""What a model on a graph is: anything that maps features and edges to logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import nn

__all__ = ["Model", "model_device"]


class Model(Protocol):
    """Anything that maps a graph to logits [n, classes]: module or black box.

    It is called with features [n, features] and edges [2, edges], and with values of these edges if it has parameters
    for them; or with one `Data` (`glasshouse.graph.models.arguments`).
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Logits [n, classes]."""


def model_device(models: Sequence[Model]) -> torch.device | None:
    """Where the first model with parameters lives; None if all are black boxes.

    Example:
        >>> model_device([torch.nn.Linear(1, 1)])
        device(type='cpu')
    """
    for model in models:
        if isinstance(model, nn.Module):
            for parameter in model.parameters():
                return parameter.device
    return None
