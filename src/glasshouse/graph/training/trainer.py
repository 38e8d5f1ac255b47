"""Train a graph neural network on the subgraph of its members, or many of one architecture in one batch.

In a batch, their weights are stacked and the members' graphs lie side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, number_faults, raise_faults
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, as_members
from glasshouse.graph.data.population import induced
from glasshouse.graph.models.calls import bind_arguments, call_first, held_values, with_edges
from glasshouse.graph.models.networks import GNN, NETWORKS, Network
from glasshouse.graph.programs.program import MessageStep, NoProgram
from glasshouse.graph.programs.trace import settings_of
from glasshouse.graph.training.many.graph import BatchedGraph, padded_size
from glasshouse.graph.training.many.program import BatchedProgram, Plan, mean_losses, planned
from glasshouse.graph.training.minibatches import Batches, training_steps
from glasshouse.graph.training.setting import Setting, node_accuracy
from glasshouse.training.batches import (
    ModuleBatch,
    fitting_threads,
    logits_of,
    one_thread_per_operation,
    optimizer_obstacle,
    say_once,
    split,
    spread,
)
from glasshouse.training.trainer import OnDevice, check_factory

_TOGETHER = 4  # models per batch on a CPU
_TRIED = 2  # models whose first step is compared

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def adam(lr: float = 1e-2, weight_decay: float = 1e-5) -> OptimizerFactory:
    """Makes Adam optimizers.

    Example:
        >>> adam(lr=0.01)([nn.Parameter(torch.zeros(1))]).defaults["lr"]
        0.01
    """
    return functools.partial(torch.optim.Adam, lr=lr, weight_decay=weight_decay)


def sgd(lr: float = 0.1, momentum: float = 0.9, weight_decay: float = 1e-5) -> OptimizerFactory:
    """Makes stochastic gradient descent with momentum.

    Example:
        >>> sgd(lr=0.5)([nn.Parameter(torch.zeros(1))]).defaults["momentum"]
        0.9
    """
    return functools.partial(torch.optim.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay)


_ADAM = adam()


class NodeTrainer(OnDevice):
    """What trainers on the nodes of a graph share."""

    setting: Setting = "inductive"
    untrained: Callable[[Data], nn.Module]

    def restore(self, data: Data, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained module again, from its stored weights; on the device that the trainer uses."""
        model = self.untrained(data)
        model.load_state_dict(tensors)
        return model.to(self.place).eval()

    def metrics(self, data: Data, members: BoolArray, model: nn.Module) -> dict[str, float]:
        """Accuracy on members and on others, for a pool's manifest."""
        sides = {"train_accuracy": members, "test_accuracy": ~members}
        return {name: node_accuracy(model, data, who, setting=self.setting) for name, who in sides.items() if who.any()}


@dataclass(frozen=True, kw_only=True)
class GNNTrainer(NodeTrainer):
    """Trains a fresh GNN on the graph of the members; the same seed gives the same weights.

    In the inductive setting, the model sees the members, their features, their labels and the edges between two
    members; of the rest of the graph only the number of features and classes. In the transductive setting, it sees
    the whole graph but only the members' labels. Members without a label (below 0) pass on their features but have no
    loss.

    Args:
        architecture: a registered network, such as ``"gcn"``, ``"sage"`` or ``"gat"``; see `register_network`.
        model: makes an untrained module of your own, called as ``module(x, edge_index)`` or ``module(data)``, with
            values of edges if it has parameters for them, and giving logits [n, C] (or a dict or tuple with them, or
            probabilities, whose logarithms are then trained); it then replaces ``architecture``, ``hidden``, ``layers``
            and ``dropout``.
        hidden: width of the hidden layers.
        layers: number of graph convolutions.
        dropout: share of hidden values dropped while training.
        edge_dropout: share of the edges that each step leaves out (Rong et al. 2020), each direction by itself. Such
            models are trained one at a time.
        epochs: passes over all members, of one step each, or of one step per part.
        optimizer: makes an optimizer from parameters, such as `adam` or `sgd` with its settings.
        device: where to train; by default the GPU, if there is one.
        setting: ``"inductive"`` or ``"transductive"``.
        batches: for a graph that is too large for one step, the parts that it is trained by: `RandomNodes` or
            `Neighbors`. They are parts of what the model may see anyway. The graph stays in main memory, and such
            models are trained one at a time. By default each step sees all of it.

    Example:
        >>> import numpy as np
        >>> data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0, 1]))
        >>> model = GNNTrainer(hidden=8, epochs=3, device="cpu")(data, np.array([True, True, True, False]), seed=0)
        >>> model(data.x, data.edge_index).shape
        torch.Size([4, 2])
        >>> GNNTrainer(architecture="gatt")
        Traceback (most recent call last):
        glasshouse.InputError: architecture: "gatt" is not a network. Did you mean "gat"? Known: gcn, sage, ...
    """

    architecture: str = "gcn"
    model: Callable[[], nn.Module] | None = None
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.5
    edge_dropout: float = 0.0
    epochs: int = 50
    optimizer: OptimizerFactory = _ADAM
    device: str | None = None
    setting: Setting = "inductive"
    batches: Batches | None = None
    # looked up once: workers need not know a plug-in by its name, and a pool notices when its code changes
    network: Network = field(init=False, repr=False)

    def __post_init__(self) -> None:
        least = {"hidden": 1, "layers": 1, "epochs": 1}
        faults = number_faults(self, at_least=least, shares=("dropout", "edge_dropout"))
        if self.setting not in ("inductive", "transductive"):
            faults.append(f'setting: "{self.setting}" is not known. Use "inductive" or "transductive".')
        try:
            object.__setattr__(self, "network", NETWORKS.find(self.architecture))
        except InputError as error:
            hint = " Pass a network of your own as model=." if callable(self.architecture) else ""
            faults.append(f"architecture: {error}{hint}")
        raise_faults(faults)
        if self.model is not None:
            check_factory(self.model, place="model")

    def __call__(
        self,
        data: Data,
        members: BoolArray,
        seed: int,
        *,
        after_epoch: Callable[[int, nn.Module], None] | None = None,
    ) -> nn.Module:
        """A trained module in evaluation mode: a `GNN`, or your own if ``model`` is given.

        ``after_epoch(epochs so far, model)`` is called after each epoch. It may ask the model in evaluation mode; it
        must not draw from torch's random stream.
        """
        _check_data(data)
        transductive = self.setting == "transductive"
        stored = self.place if self.batches is None else torch.device("cpu")  # a large graph may not fit on a GPU
        graph = induced(data, np.ones_like(members) if transductive else members, device=stored)
        labelled = graph.y >= 0
        if transductive:
            labelled &= torch.from_numpy(members).to(stored)
        _check_labelled(labelled)
        steps = training_steps(self.batches, graph, labelled, seed=seed, device=self.place)
        with torch.random.fork_rng():  # weights and dropout use our seed, and the user's random stream stays unchanged
            torch.manual_seed(seed_for(seed, "weights"))
            model = self.untrained(data).to(self.place)
            first = next(steps(1)).graph
            arguments = bind_arguments(model, held_values(first))
            look = functools.partial(call_first, data=first, arguments=arguments)
            read = logits_of(model, first.x, first.edge_index, classes=_classes(data), call=look)
            optimizer = self.optimizer(model.parameters())
            # A step is little more than features [n, f] times weights [f, hidden], so nodes x weights show whether it
            # is worth a second thread. Gathering messages is too short to share: threads would wait at each of them.
            one_graph = after_epoch is None and self.batches is None and not self.edge_dropout
            with fitting_threads(model, first.x, batch_size=len(first.x)), _norms_kept(model, one_graph=one_graph):
                for epoch in range(1, self.epochs + 1):
                    model.train()
                    for step in steps(epoch):
                        optimizer.zero_grad(set_to_none=True)
                        seen = step.graph
                        if self.edge_dropout:  # drawn on the CPU, as the same on every device
                            seen = with_edges(seen, torch.rand(seen.edge_index.shape[1]) >= self.edge_dropout)
                        logits = read(arguments.call(model, seen))
                        nn.functional.cross_entropy(logits[step.counted], step.y[step.counted]).backward()
                        optimizer.step()
                    if after_epoch is not None:
                        after_epoch(epoch, model.eval())
        return model.eval()

    def train_many(self, data: Data, members: BoolArray, seeds: Sequence[int]) -> list[nn.Module]:
        """Like one call per row of ``members`` [K, n] with its seed, in a fraction of the time.

        Without dropout the models are those of single calls up to rounding; with it, they draw other random numbers.
        Modules of your own are traced, and tried for one step. Modules or optimizers that cannot be batched are trained
        one at a time; the log ``glasshouse`` says why.
        """
        _check_data(data)
        masks = as_members(members, (len(seeds), int(data.num_nodes)), place="members")
        if not len(masks):
            return []
        with torch.random.fork_rng():
            fresh = [_untrained(self, data, seed) for seed in seeds]
            with one_thread_per_operation():  # a few steps are too short to share
                plan = _plan(self, data, masks, fresh)
        if isinstance(plan, str):
            say_once(f"Models are trained one at a time: {plan}.")
            return [self(data, who, seed) for who, seed in zip(masks, seeds, strict=True)]
        sizes = [padded_size(int(who.sum())) for who in masks]
        bytes_each = _bytes_each(plan, fresh[0], data, max(sizes))

        def train(group: list[int]) -> list[nn.Module]:
            streams = [seed_for(seeds[index], "dropout") for index in group]
            random = [torch.Generator(self.place).manual_seed(stream) for stream in streams]
            graph = BatchedGraph.of(_member_graphs(self, data, masks[group]), random=random)
            modules = ModuleBatch([fresh[index] for index in group])
            step = BatchedProgram(plan.program, modules, graph, apart=plan.apart)
            optimizer = self.optimizer(modules.parameters.values())
            for _ in range(self.epochs):
                optimizer.zero_grad(set_to_none=True)
                mean_losses(step()[step.output], plan.read, graph).backward()
                optimizer.step()
            return modules.unbatch()

        groups = split(sizes, bytes_each=bytes_each, device=self.place, together=_TOGETHER)
        return spread(train, groups, device=self.place)

    def untrained(self, data: Data) -> nn.Module:
        """A fresh module for this graph, from torch's current random stream."""
        if self.model is not None:
            return self.model()
        features, classes = int(data.x.shape[1]), _classes(data)
        return GNN(self.network(features, self.hidden, classes, self.layers), dropout=self.dropout)


def _classes(data: Data) -> int:
    """How many classes the labels show; a NaN is none."""
    return int(data.y[data.y >= 0].max()) + 1


@contextmanager
def _norms_kept(model: nn.Module, *, one_graph: bool) -> Iterator[None]:
    """Let GCN layers of ours keep the weights of the edges while they see one graph, instead of finding them anew."""
    known = one_graph and type(model) is GNN
    layers: list[Any] = [layer for layer in model.modules() if known and type(layer) is GCNConv and not layer.cached]
    for layer in layers:
        layer.cached = True
    try:
        yield
    finally:
        for layer in layers:
            layer.cached, layer._cached_edge_index = False, None


def _check_data(data: Any) -> None:
    if isinstance(data, Population):
        raise InputError(
            "trainer: GNNTrainer trains on the nodes of one graph. Pass GraphClassifierTrainer for a population of "
            "graphs, TorchTrainer or SklearnTrainer for other records."
        )


def batching_obstacle(trainer: GNNTrainer, data: Data, members: BoolArray) -> str | None:
    """Why models of this trainer must be trained one at a time, in words, or None; it tries one step."""
    with torch.random.fork_rng():
        found = _plan(trainer, data, members, [_untrained(trainer, data, seed) for seed in range(len(members))])
    return found if isinstance(found, str) else None


def _untrained(trainer: GNNTrainer, data: Data, seed: int) -> nn.Module:
    torch.manual_seed(seed_for(seed, "weights"))
    return trainer.untrained(data).to(trainer.place)


def _check_labelled(labelled: Tensor) -> None:
    """Refuse members, bool [n] whether each has a label, of whom nobody has one."""
    if not bool(labelled.any()):
        raise InputError("members: no member has a label, so there is nothing to train on.")


def _member_graphs(trainer: GNNTrainer, data: Data, members: BoolArray) -> list[Data]:
    graphs = [induced(data, who, device=trainer.place) for who in members]
    for graph in graphs:
        _check_labelled(graph.y >= 0)
    return graphs


def _plan(trainer: GNNTrainer, data: Data, members: BoolArray, models: Sequence[nn.Module]) -> Plan | str:
    """How models are trained together, or why they are not. It is tried on the two graphs that are filled up most."""
    if trainer.batches is not None:
        return "each of them is trained by parts of the graph"
    if trainer.edge_dropout:
        return "each step leaves out other edges"
    if trainer.setting == "transductive":
        return "in the transductive setting each of them sees the whole graph"
    obstacle = optimizer_obstacle(trainer.optimizer, models[0].parameters())
    if obstacle:
        return obstacle
    if len({settings_of(model) for model in models}) > 1:
        return "the models are not all of one shape"
    sizes = [int(who.sum()) for who in members]
    size = padded_size(min(sizes, key=lambda nodes: nodes - padded_size(nodes)))
    picked = sorted((k for k, nodes in enumerate(sizes) if padded_size(nodes) == size), key=lambda k: sizes[k])[:_TRIED]
    graphs = _member_graphs(trainer, data, members[picked])
    try:
        return planned([models[k] for k in picked], graphs, classes=_classes(data))
    except NoProgram as reason:
        return f"of {type(models[0]).__name__}, {reason}"
    except Exception as error:  # whatever is wrong with a model, training it alone says it better
        return f"a step of {type(models[0]).__name__} cannot be tried in a batch ({type(error).__name__})"


def _bytes_each(plan: Plan, model: nn.Module, data: Data, size: int) -> int:
    """A generous guess at a model's share of a batch: features, messages, hidden values, weights and their moments."""
    edges = int(data.edge_index.shape[1]) * size // max(1, len(data.x))
    weights = sum(parameter.numel() for parameter in model.parameters())
    per_step = [
        plan.widths[step.name] * (8 * size + 4 * edges * isinstance(step, MessageStep)) for step in plan.program.steps
    ]
    return 4 * (size * int(data.x.shape[1]) + 4 * weights + sum(per_step))
