"""Train many modules of one architecture in one batch: their weights batched, the members' graphs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch
from torch import nn
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray
from glasshouse.core.randomness import seed_for
from glasshouse.graph.data.subgraph import InducedGraph, induced
from glasshouse.graph.programs.program import MessageStep, NoProgram
from glasshouse.graph.programs.trace import same_settings
from glasshouse.graph.training.many.check import Plan, mean_losses, planned
from glasshouse.graph.training.many.graph import BatchedGraph, padded_size
from glasshouse.graph.training.many.program import BatchedProgram
from glasshouse.graph.training.minibatches import Batches
from glasshouse.graph.training.setting import Setting, check_labelled
from glasshouse.training.batches import (
    ModuleBatch,
    one_thread_per_operation,
    optimizer_obstacle,
    say_once,
    split,
    spread,
)

_TOGETHER = 4  # models per batch on a CPU
_TRIED = 2  # models whose first step is compared


class _Trainer(Protocol):
    """What is read from a trainer; `GNNTrainer` has it, and imports this module."""

    @property
    def setting(self) -> Setting: ...
    @property
    def batches(self) -> Batches | None: ...
    @property
    def epochs(self) -> int: ...
    @property
    def optimizer(self) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]: ...
    @property
    def place(self) -> torch.device: ...
    def untrained(self, data: Data) -> nn.Module: ...
    def __call__(self, data: Data, members: BoolArray, seed: int) -> nn.Module: ...


def batching_obstacle(trainer: _Trainer, data: Data, members: BoolArray) -> str | None:
    """Why models of this trainer must be trained one at a time, in words, or None; it tries one step."""
    with torch.random.fork_rng():
        found = _plan(trainer, data, members, [_untrained(trainer, data, seed) for seed in range(len(members))])
    return found if isinstance(found, str) else None


def train_batched(trainer: _Trainer, data: Data, members: BoolArray, seeds: Sequence[int]) -> list[nn.Module]:
    """Models trained together if possible, else one at a time; see `GNNTrainer.train_many`."""
    if not len(members):
        return []
    with torch.random.fork_rng():
        fresh = [_untrained(trainer, data, seed) for seed in seeds]
        with one_thread_per_operation():  # a few steps are too short to share
            plan = _plan(trainer, data, members, fresh)
    if isinstance(plan, str):
        say_once(f"Models are trained one at a time: {plan}.")
        return [trainer(data, who, seed) for who, seed in zip(members, seeds, strict=True)]
    sizes = [padded_size(int(who.sum())) for who in members]
    bytes_each = _bytes_each(plan, fresh[0], data, max(sizes))

    def train(group: list[int]) -> list[nn.Module]:
        streams = [seed_for(seeds[index], "dropout") for index in group]
        random = [torch.Generator(trainer.place).manual_seed(stream) for stream in streams]
        graph = BatchedGraph.of(_member_graphs(trainer, data, members[group]), random=random)
        modules = ModuleBatch([fresh[index] for index in group])
        step = BatchedProgram(plan.program, modules, graph, apart=plan.apart)
        optimizer = trainer.optimizer(modules.parameters.values())
        for _ in range(trainer.epochs):
            optimizer.zero_grad(set_to_none=True)
            mean_losses(step()[step.output], plan.read, graph).backward()
            optimizer.step()
        return modules.unbatch()

    groups = split(sizes, bytes_each=bytes_each, device=trainer.place, together=_TOGETHER)
    return spread(train, groups, device=trainer.place)


def _member_graphs(trainer: _Trainer, data: Data, members: BoolArray) -> list[InducedGraph]:
    graphs = [induced(data, who, device=trainer.place) for who in members]
    for graph in graphs:
        check_labelled(graph.y >= 0)
    return graphs


def _untrained(trainer: _Trainer, data: Data, seed: int) -> nn.Module:
    torch.manual_seed(seed_for(seed, "weights"))
    return trainer.untrained(data).to(trainer.place)


def _plan(trainer: _Trainer, data: Data, members: BoolArray, models: Sequence[nn.Module]) -> Plan | str:
    """How models are trained together, or why they are not. It is tried on the two graphs that are filled up most."""
    if trainer.batches is not None:
        return "each of them is trained by parts of the graph"
    if trainer.setting == "transductive":
        return "in the transductive setting each of them sees the whole graph"
    obstacle = optimizer_obstacle(trainer.optimizer, models[0].parameters())
    if obstacle:
        return obstacle
    if not same_settings(models):
        return "the models are not all of one shape"
    sizes = [int(who.sum()) for who in members]
    size = padded_size(min(sizes, key=lambda nodes: nodes - padded_size(nodes)))
    picked = sorted((k for k, nodes in enumerate(sizes) if padded_size(nodes) == size), key=lambda k: sizes[k])[:_TRIED]
    graphs = _member_graphs(trainer, data, members[picked])
    try:
        return planned([models[k] for k in picked], graphs, classes=int(data.y.max()) + 1)
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
