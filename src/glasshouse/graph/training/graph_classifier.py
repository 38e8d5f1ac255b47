"""Train a classifier of whole graphs, such as molecules, on the members of a population of graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn
from torch_geometric.data import Batch

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, number_faults, raise_faults
from glasshouse.core.outputs import unwrapped
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population
from glasshouse.graph.data.graph_list import Graphs
from glasshouse.graph.models.calls import GraphCall, bind_graph_call
from glasshouse.graph.training.trainer import OptimizerFactory, adam
from glasshouse.training.batches import batches, fitting_threads, logits_of, mean_loss
from glasshouse.training.trainer import ModuleTrainer, OnDevice

_LOOK = 64  # graphs that show what a module answers with
_ADAM = adam()


@dataclass(frozen=True, kw_only=True)
class GraphClassifierTrainer(OnDevice, ModuleTrainer):
    """Trains a fresh classifier of graphs by mini-batches of graphs; same seed, same weights.

    Its population is ``Population(graphs)`` or ``Population(graphs, labels)``, with a list of
    `torch_geometric.data.Data` or a dataset of PyTorch Geometric. Models are trained one after another; give the audit
    ``compute=LocalProcesses(…)`` to train several at once.

    Args:
        module: makes an untrained module, such as ``lambda: MyNet()``. It is called with what its arguments are named:
            ``(x, edge_index, batch)``, also ``edge_attr``, ``edge_weight``, ``pos`` or any other field of the graphs;
            or with the whole batch, ``(data)``. It gives logits [B, C], or [B] or [B, 1] where there are two classes; a
            dict or a tuple with the logits first is unwrapped, and a module that ends in softmax is trained on the
            logarithms of its probabilities. It does not see the labels.
        optimizer: makes an optimizer from parameters, such as `adam` or `sgd` with its settings.
        scheduler: makes a learning-rate scheduler from the optimizer, stepped once per epoch.
        epochs: passes over the members.
        batch_size: graphs per step.
        device: where to train; by default the GPU, if there is one.

    Example:
        >>> import numpy as np
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import global_mean_pool
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.last = nn.Linear(3, 2)
        ...     def forward(self, x, batch):
        ...         return self.last(global_mean_pool(x, batch))
        >>> graphs = [Data(x=torch.randn(4, 3), y=torch.tensor([label])) for label in (0, 1, 0, 1)]
        >>> trainer = GraphClassifierTrainer(module=lambda: Net(), epochs=2)
        >>> model = trainer(Population(graphs), np.array([True, True, True, False]), seed=0)
        >>> model(graphs[0].x, torch.zeros(4, dtype=torch.long)).shape
        torch.Size([1, 2])
    """

    optimizer: OptimizerFactory = _ADAM
    scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None = None
    epochs: int = 50
    batch_size: int = 64
    device: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        raise_faults(number_faults(self, at_least={"epochs": 1, "batch_size": 1}))

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained module in evaluation mode."""
        device = self.place
        graphs = _graphs_of(population)[members]
        y = torch.from_numpy(population.y[members]).to(device)
        with torch.random.fork_rng():  # weights and dropout follow our seed; the user's own random stream is unchanged
            torch.manual_seed(seed_for(seed, "weights"))
            model = self.module().to(device)
            look = graphs[:_LOOK].batch(device=device)
            call = bind_graph_call(model, look)
            looked = functools.partial(_first_answer, call, look, population.classes)
            read = logits_of(model, look.batch, call=looked)  # lazy layers get their weights here
            optimizer = self.optimizer(model.parameters())
            scheduler = self.scheduler(optimizer) if self.scheduler else None
            shuffling = torch.Generator().manual_seed(seed_for(seed, "batches"))
            nodes = self.batch_size * -(-len(look.batch) // look.num_graphs)
            with fitting_threads(model, look.batch, nodes):
                for _ in range(self.epochs):
                    model.train()
                    for rows in batches(len(graphs), self.batch_size, shuffling):
                        batch = graphs[rows.numpy()].batch(device=device)
                        optimizer.zero_grad(set_to_none=True)
                        mean_loss(read(call(model, batch)), y[rows.to(device)]).backward()
                        optimizer.step()
                    if scheduler:
                        scheduler.step()
        return model.eval()


def _graphs_of(population: Any) -> Graphs:
    graphs = getattr(population, "x", None)
    if isinstance(graphs, Graphs):
        return graphs
    raise InputError(
        "population: GraphClassifierTrainer trains on graphs: Population(graphs), a list of torch_geometric.data.Data. "
        "Rows of numbers are for TorchTrainer, and the nodes of one graph for GNNTrainer."
    )


def _first_answer(call: GraphCall, batch: Batch, classes: NDArray[Any], model: nn.Module) -> Any:
    """What an untrained module returns, if it has one logit per class; or one in all, for two classes."""
    if not len(classes):
        raise InputError(
            "population: GraphClassifierTrainer trains classifiers, and the population is a regression. Pass your own "
            "function (population, members, seed) -> model as trainer."
        )
    answer = call.tried(model, batch)
    rows = unwrapped(answer)
    width = rows.shape[1] if rows.ndim == 2 else 1
    if width != len(classes) and not (width == 1 and len(classes) == 2):
        raise InputError(
            f"module: it gives {width} numbers per graph, but there are {len(classes)} classes; give one logit per "
            f"class, first if it returns several things. If it knows more classes, use Population(…, classes=…)."
        )
    return answer
