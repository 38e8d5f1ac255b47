"""Train many GNNs of one architecture in one batch: their weights batched, the members' graphs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.graph.data.induced import induced
from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.training.batched.graphs import BatchedGraph, padded_size
from glasshouse.graph.training.batched.layers import batched_layer, layer_obstacle
from glasshouse.graph.training.dropout import drop
from glasshouse.graph.training.setting import Setting
from glasshouse.randomness import seed_for
from glasshouse.training.batching import ModuleBatch, optimizer_obstacle, say_once, split, spread

__all__ = ["batching_obstacle", "train_batched"]

_TOGETHER = 4  # models per batch on a CPU


class _Trainer(Protocol):
    """What is read from a trainer; `GNNTrainer` has it, and imports this module."""

    @property
    def setting(self) -> Setting: ...
    @property
    def hidden(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def optimizer(self) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]: ...
    @property
    def place(self) -> torch.device: ...
    def untrained(self, data: Data) -> nn.Module: ...
    def __call__(self, data: Data, members: BoolArray, seed: int) -> nn.Module: ...


def batching_obstacle(trainer: _Trainer, data: Data) -> str | None:
    """Why this trainer's models must be trained one at a time, in words, or None.

    Example:
        >>> from glasshouse.graph import GNNTrainer
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1]))
        >>> batching_obstacle(GNNTrainer(), data) is None
        True
        >>> batching_obstacle(GNNTrainer(optimizer=torch.optim.LBFGS), data)
        'the optimizer LBFGS mixes entries of the weights, so models would mix'
    """
    if trainer.setting == "transductive":
        return "in the transductive setting each of them sees the whole graph"
    with torch.random.fork_rng():
        model = trainer.untrained(data)
    if type(model) is not GNN:
        return f"the model is a {type(model).__name__} of your own, and only its call is known"
    obstacles = [layer_obstacle(layer) for layer in model.convolutions]
    obstacles.append(optimizer_obstacle(trainer.optimizer, model.parameters()))
    return next((obstacle for obstacle in obstacles if obstacle), None)


def train_batched(trainer: _Trainer, data: Data, members: BoolArray, seeds: Sequence[int]) -> list[nn.Module]:
    """Models trained together if possible, else one at a time; see `GNNTrainer.train_many`.

    Example:
        >>> import numpy as np
        >>> from glasshouse.graph import GNNTrainer
        >>> data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0, 1]))
        >>> members = np.array([[True, True, False, False], [False, False, True, True]])
        >>> len(train_batched(GNNTrainer(hidden=8, epochs=2, device="cpu"), data, members, seeds=[0, 1]))
        2
    """
    obstacle = batching_obstacle(trainer, data)
    if obstacle:
        say_once(f"Models are trained one at a time: {obstacle}.")
        return [trainer(data, who, seed) for who, seed in zip(members, seeds, strict=True)]
    sizes = [padded_size(int(who.sum())) for who in members]
    bytes_each = _bytes_each(trainer, data, max(sizes, default=0))
    with torch.random.fork_rng():
        fresh = [_untrained(trainer, data, seed) for seed in seeds]

    def train(group: list[int]) -> list[nn.Module]:
        return _train(
            trainer, data, members[group], [fresh[index] for index in group], [seeds[index] for index in group]
        )

    return spread(
        train, split(sizes, bytes_each=bytes_each, device=trainer.place, together=_TOGETHER), device=trainer.place
    )


def _untrained(trainer: _Trainer, data: Data, seed: int) -> nn.Module:
    torch.manual_seed(seed_for(seed, "weights"))
    return trainer.untrained(data).to(trainer.place)


def _bytes_each(trainer: _Trainer, data: Data, size: int) -> int:
    """A generous guess at a model's share of a batch: features, messages, hidden values, weights and their moments."""
    features, width = int(data.x.shape[1]), max(trainer.hidden, int(data.y.max()) + 1)
    edges = int(data.edge_index.shape[1]) * size // max(1, len(data.x))
    return 4 * (size * features + 4 * features * width + trainer.layers * width * (8 * size + 4 * edges))


def _train(
    trainer: _Trainer, data: Data, members: BoolArray, models: Sequence[nn.Module], seeds: Sequence[int]
) -> list[nn.Module]:
    graphs = [induced(data, who, device=trainer.place) for who in members]
    if not all(bool((graph.y >= 0).any()) for graph in graphs):
        raise InputError("members: no member has a label, so there is nothing to train on.")
    graph = BatchedGraph.of(graphs)
    modules = ModuleBatch(models)
    (gnn, *_) = models
    assert isinstance(gnn, GNN)  # noqa: S101  # `batching_obstacle` has checked it
    layers = [batched_layer(layer, graph) for layer in gnn.convolutions]
    tensors: dict[str, Tensor] = {**modules.parameters, **modules.buffers}
    weights = [
        {name.removeprefix(place): tensor for name, tensor in tensors.items() if name.startswith(place)}
        for place in (f"convolutions.{index}." for index in range(len(layers)))
    ]
    random = [torch.Generator(trainer.place).manual_seed(seed_for(seed, "dropout")) for seed in seeds]
    optimizer = trainer.optimizer(modules.parameters.values())
    for _ in range(trainer.epochs):
        optimizer.zero_grad(set_to_none=True)
        x = graph.x
        for layer, own in zip(layers[:-1], weights[:-1], strict=True):
            x = drop(torch.relu(layer(x, own)), gnn.dropout, random)
        logits = layers[-1](x, weights[-1]).flatten(0, 1)[graph.labelled]
        # classes before nodes, [1, C, L]: four times faster on a CPU, which then takes many nodes at once
        losses = nn.functional.cross_entropy(logits.t()[None], graph.y[None], reduction="none")
        (losses * graph.weight).sum().backward()  # the models' mean losses: no model's gradient depends on another's
        optimizer.step()
    return modules.unbatch()
