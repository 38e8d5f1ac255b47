"""A loss of the user's own on a graph: several labels per node, a regression, or anything else that nodes have.

A model with such a loss is asked as a classifier of two classes whose first has just this loss, so that every attack
and engine can ask it. The nodes' outcomes are the last columns of the features: any part of a graph holds its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.outputs import unwrapped
from glasshouse.graph.data.checking import CheckedGraph, graph_faults
from glasshouse.graph.models.calls import bind_arguments
from glasshouse.graph.models.edge_values import held_values
from glasshouse.graph.models.profile import evaluation_mode
from glasshouse.query.losses import Batch, Loss, asked_losses

NO_TRAINER = "trainer: with a loss of your own pass a function (data, members, seed) -> model."
_LEAST = 1e-6  # added to all losses, which changes no S: near 0 a margin would magnify what float32 rounds


class _Answer(NamedTuple):
    """What a model answered about the nodes of a graph."""

    value: Any


def _told(x: Any) -> Any:
    """The model that a loss asks about ``batch.x``."""
    if not isinstance(x, _Answer):
        raise InputError("loss: on a graph a model answers about its nodes as they are; ask model(batch.x).")
    return x.value


class LossHead(nn.Module):
    """From answers about nodes and their outcomes to logits of two classes, of which the first has the loss."""

    def __init__(self, loss: Loss, shape: tuple[int, ...], kind: torch.dtype) -> None:
        super().__init__()
        self.loss, self.shape, self.kind = loss, shape, kind

    def forward(self, answer: Any, outcomes: Tensor) -> Tensor:
        """[n, 2] from an answer about n nodes and outcomes [n, columns]."""
        if not len(outcomes):
            return outcomes.new_zeros(0, 2)
        told = np.nansum(asked_losses(self.loss, _told, self.batch(answer, outcomes))["loss"], axis=1)
        if told.min() < -_LEAST:
            raise InputError("loss: a node's must not be negative; add a constant, which changes no attack on graphs.")
        margin = torch.from_numpy(loss_to_margin(told.clip(min=0.0) + _LEAST)).to(outcomes.device, outcomes.dtype)
        return torch.stack([margin / 2, -margin / 2], dim=1)

    def batch(self, answer: Any, outcomes: Tensor) -> Batch:
        """What a loss is given: in place of features the answer, which `_told` takes out."""
        y = outcomes.reshape(len(outcomes), *self.shape).to(self.kind).cpu().numpy()
        return Batch(_Answer(unwrapped(answer)), y, np.arange(len(y)).astype(str))


class LossModel(nn.Module):
    """A model of the user's with a loss, called with a graph whose features end with the outcomes."""

    def __init__(self, model: Any, head: LossHead, graph: Data, own: Tensor) -> None:
        super().__init__()
        self.model, self.head = model, head
        self.columns, self.kind = own.shape[1], own.dtype
        self.arguments = bind_arguments(model, held_values(graph))
        self.hops = getattr(model, "hops", None)
        if hasattr(head.loss, "settled"):
            with evaluation_mode([self]):
                batch = head.batch(self.answer(graph), graph.x[:, self.columns :])
            self.head = LossHead(head.loss.settled(_told, batch), head.shape, head.kind)

    def forward(self, data: Data) -> Tensor:
        """Logits [n, 2]."""
        answer: Tensor = self.head(self.answer(data), data.x[:, self.columns :])
        return answer

    def answer(self, data: Data) -> Any:
        """What the model answers about the nodes of a graph."""
        x = data.x[:, : self.columns]
        x = x if self.kind == torch.float32 else x.to(self.kind)
        values = {name: data[name] for name, _ in self.arguments.held}
        if self.arguments.takes_data:
            return self.model(Data(x=x, edge_index=data.edge_index, **values))
        return self.model(x, data.edge_index, **{place: values[name] for place, name in self.arguments.bound})


def with_outcomes(data: Data, loss: Loss) -> tuple[CheckedGraph, Callable[[Any], LossModel]]:
    """A graph with its outcomes among the features, and what makes models answer about it; see the module.

    A node whose outcomes are all NaN, or whole numbers below 0, has none, and is context.
    """
    if getattr(loss, "whole", False):
        raise InputError("loss: it needs all records in one batch, and on a graph each node must have its own.")
    graph: CheckedGraph = CheckedGraph.from_dict({**data.to_dict(), "y": torch.zeros(data.num_nodes or 0)})
    raise_faults(graph_faults(graph))
    y = getattr(data, "y", None)
    if not isinstance(y, Tensor) or y.shape[:1] != graph.x.shape[:1]:
        raise InputError("data.y: give the outcomes of every node as a tensor, [n] or [n, L].")
    outcomes = y.reshape(len(y), -1)
    absent = outcomes.isnan() if y.is_floating_point() else outcomes < 0
    lacking = absent.all(dim=1)
    if bool(lacking.all()) or (y.is_floating_point() and bool((absent.any(dim=1) & ~lacking).any())):
        raise InputError("data.y: give each node all of its outcomes, or NaN for all of one that has none.")
    some = torch.where(lacking[:, None], outcomes[~lacking][:1], outcomes)  # losses of the lacking ones are not used
    graph.x = torch.cat([data.x.float(), some.to(data.x.device).float()], dim=1)
    graph.y = torch.where(lacking, -1, 0)
    head = LossHead(loss, tuple(y.shape[1:]), y.dtype)
    return graph, lambda model: LossModel(model, head, graph, data.x)
