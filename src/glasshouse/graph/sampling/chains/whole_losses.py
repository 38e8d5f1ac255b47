"""Losses of all nodes on the graph induced by a mask, by a plain forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.graph.models.asking import ask_model, manners_of, quiet
from glasshouse.graph.rule.question import ask
from glasshouse.graph.rule.reference import induced_losses
from glasshouse.losses import tensor_losses

__all__ = ["WholeLosses", "forward_losses"]

WholeLosses = Callable[[BoolArray], FloatArray]  # mask [n] -> losses [models, n]


def forward_losses(models: Sequence[Any], data: Data) -> WholeLosses:
    """A function from a mask [n] to the losses [models, n] of any modules or callables ``(x, edge_index) -> logits``.

    Losses of nodes outside the mask have no meaning.

    Example:
        >>> import numpy as np
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> forward_losses([lambda x, edge_index: x * 0], pair)(np.array([True, True])).round(4)
        array([[0.6931, 0.6931]])
    """
    question = ask(data, torch.ones(1, int(data.num_nodes), dtype=torch.bool), torch.arange(0))

    def asked(mask: BoolArray) -> FloatArray:
        members = torch.from_numpy(mask).to(question.edge_index.device)
        graph = question.graph(members[question.edge_index].all(0))
        with quiet(models):
            found = [
                induced_losses(model, question, members)
                if manners_of(model).everywhere
                else tensor_losses(ask_model(model, graph), data.y)
                for model in models
            ]
        return torch.stack(found).cpu().numpy()

    return asked
