"""A program for several models at once: the same steps, on values [K, m, width] with each model's own weights.

A step that is not known to work in a batch is done for one model after another, each on its own nodes. Modules are
trained in a batch if their first step there is their own first step, up to rounding.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.data import Data

from glasshouse.graph.layers.layer_type import LAYER_TYPES
from glasshouse.graph.models.calls import Arguments, bind_arguments, held_values, with_edges
from glasshouse.graph.programs.program import (
    INPUTS,
    MessageStep,
    NoProgram,
    Program,
    RowStep,
    Step,
    Value,
    arguments_of,
)
from glasshouse.graph.programs.rows import Weights, weights_of
from glasshouse.graph.programs.trace import Asked, traced
from glasshouse.graph.training.many.graph import BatchedGraph, DrawnBy
from glasshouse.graph.training.many.layers import BatchedRows, batched_layer, rows_of
from glasshouse.training.batches import ModuleBatch, logits_of


def _apart(
    step: Step, roots: Sequence[nn.Module], graph: BatchedGraph, weights: Weights
) -> Callable[[Mapping[str, Any]], Tensor]:
    """The step as each model's own module does it, on its own graph without the nodes that fill it up.

    So it may look at the whole graph, as GraphNorm does. It is exact, but saves only the time of the other steps.
    """
    if isinstance(step, MessageStep):
        calls: list[nn.Module] = [root.get_submodule(step.module) for root in roots]
        own, names, edges = weights_of(weights, step.module), (*step.inputs, *step.edges), step.edges
    else:
        calls, names = [step.function(root) for root in roots], step.inputs
        own, edges = {name: weights[name] for name in calls[0].state_dict()}, names if step.on == "edges" else ()
    random = graph.random or [None] * graph.count

    def run(values: Mapping[str, Any]) -> Tensor:
        given = {name: _own(values[name], graph, per_edge=name in edges) for name in names}
        # in one go: a slice per model would give each weight K gradients as large as all of them
        mine = {name: tensor.unbind(0) for name, tensor in own.items()}
        results = []
        for k, (call, one) in enumerate(zip(calls, graph.own, strict=True)):
            args, kwargs = step.arguments({**_of(given, k), "edge_index": one.edge_index})
            with DrawnBy(random[k]):
                results.append(functional_call(call, _of(mine, k), tuple(args), kwargs))
        if isinstance(step, RowStep) and step.on == "edges":
            return torch.cat(results)
        empty = [rows.new_zeros(graph.size - len(rows), *rows.shape[1:]) for rows in results]
        return torch.stack([torch.cat(both) for both in zip(results, empty, strict=True)])

    return run


def _of(parts: Mapping[str, Sequence[Tensor]], k: int) -> dict[str, Tensor]:
    return {name: part[k] for name, part in parts.items()}


def _own(value: Any, graph: BatchedGraph, *, per_edge: bool) -> list[Tensor]:
    """One tensor per model: its own nodes' rows, or its own edges'."""
    if per_edge:
        return list(value.split([one.edge_index.shape[1] for one in graph.own]))
    if value is graph.x:
        return [one.x for one in graph.own]
    return [part[: len(one.x)] for part, one in zip(graph.dense(value).unbind(0), graph.own, strict=True)]


Run = Callable[[Mapping[str, Any]], Any]


class BatchedProgram:
    """Runs a program, of one of the models in training mode, for the models of a batch.

    Steps that are named in ``apart``, and layers that cannot be batched, are done for one model after another.
    """

    def __init__(
        self, program: Program, batch: ModuleBatch, graph: BatchedGraph, *, apart: Collection[str] = ()
    ) -> None:
        self.output = program.output
        self.graph = graph
        self.together = 0  # how many message-passing layers are done for all models at once
        self._roots = [Asked(model.train()) for model in batch.models]
        self._weights = _all_names(batch)
        self.runs = {step.name: self._run(step, apart) for step in program.steps}

    def __call__(self) -> dict[str, Any]:
        """Every value of the program by its name; those of nodes are [K, m, width]."""
        values: dict[str, Any] = {"x": self.graph.x, **self.graph.edge_values}
        for name, run in self.runs.items():
            values[name] = run(values)
        return values

    def _run(self, step: Step, apart: Collection[str]) -> Run:
        root = self._roots[0]
        alone = step.name in apart or (
            call_obstacle(step, root, self.graph) is not None if isinstance(step, MessageStep) else step.on == "edges"
        )
        if alone:
            return _apart(step, self._roots, self.graph, self._weights)
        if isinstance(step, RowStep):
            rows = BatchedRows(root, self._weights, self.graph).compiled(step)
            return lambda values: rows(*[values[name] for name in step.inputs])
        module = root.get_submodule(step.module)
        given = {name: value.name for name, value in arguments_of(module, step).items() if name != "edge_index"}
        edges = {name: self.graph.edge_values[value] for name, value in given.items() if value in step.edges}
        nodes = {name: value for name, value in given.items() if name not in edges}
        layer = batched_layer(module, self.graph, weights_of(self._weights, step.module), **edges)
        self.together += 1
        return lambda values: layer(**{name: values[value] for name, value in nodes.items()})


def call_obstacle(step: MessageStep, root: nn.Module, graph: BatchedGraph) -> str | None:
    """Why a call of a layer cannot be done for all models at once, or None."""
    layer: Any = root.get_submodule(step.module)
    name, kind, given = type(layer).__name__, LAYER_TYPES.get(type(layer)), arguments_of(layer, step)
    if kind is None:
        return f"the layer {name} cannot be trained in one batch"
    if not kind.trains(layer) or not all(rows_of(getattr(layer, part)) for part in kind.modules):
        return f"the layer {name} is used with options that cannot be trained in one batch"
    plain = kind.takes(layer, given) and all(isinstance(one, Value) for one in given.values())
    numbers = {name for name, value in graph.edge_values.items() if value.ndim == 1}
    if not plain or not numbers.issuperset(step.edges):
        return f"the layer {name} gets values that cannot be trained in one batch"
    return None


def _all_names(batch: ModuleBatch) -> Weights:
    """Parameters and buffers under every name that they have in a traced model; two modules may share a tensor."""
    tensors: dict[str, Tensor] = {**batch.parameters, **batch.buffers}
    model = batch.models[0]
    named = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    stacked = {tensor: tensors[name] for name, tensor in named if name in tensors}
    return {f"model.{name}": stacked[tensor] for name, tensor in named}


_ROUNDING = 1e-4  # of the largest value of a tensor: sums in another order, in float32
_ROUNDING_OF_ALL = 1e-5  # of the largest gradient of a model: one that is 0 in truth, as before BatchNorm, is noise


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How the models of a trainer are trained together."""

    program: Program  # what each of them does
    apart: frozenset[str]  # names of steps that are done for one model after another
    read: Callable[[Any], Tensor]  # from answers to logits
    widths: Mapping[str, int]  # how many numbers per node each step makes, by its name


def planned(models: Sequence[nn.Module], graphs: Sequence[Data], *, classes: int) -> Plan:
    """The plan of these models, tried on them; `NoProgram` says why there is none. Models stay as they are.

    One step without dropout is compared with the step of each module on its own: logits, gradients and buffers. So
    whatever looks at the number of nodes, at other nodes or at other models is found. Row-wise operations that are
    not row-wise, as GraphNorm, are then done for one model after another. There is one graph per model, all of one
    padded size; the more nodes fill one up, the more the comparison shows.
    """
    arguments = bind_arguments(models[0], held_values(graphs[0]))
    program = traced(models[0].train(), takes_data=arguments.takes_data, keywords=dict(arguments.bound))
    graph = BatchedGraph.of(graphs)
    obstacles = [call_obstacle(step, Asked(models[0]), graph) for step in program.messages]
    if obstacles and None not in obstacles:
        raise NoProgram(str(obstacles[0]))
    own = [_Own.of(copy.deepcopy(model), one, arguments, classes) for model, one in zip(models, graphs, strict=True)]
    plan = Plan(program=program, apart=frozenset(), read=own[0].read, widths={})
    try:
        found, widths = _tried(plan, models, graph, own)
    except Exception:  # some step cannot be batched as it is
        found, widths = "", {}
    if found is not None:
        plan = replace(plan, apart=_not_row_wise(program, models, graph))
        if all(step.name in plan.apart for step in program.messages):
            raise NoProgram("its layers do something else in a batch")
        found, widths = _tried(plan, models, graph, own)
    if found is not None:
        raise NoProgram(f"in a batch, {found}")
    return replace(plan, widths=widths)


def mean_losses(answers: Tensor, read: Callable[[Any], Tensor], graph: BatchedGraph) -> Tensor:
    """The sum of the models' mean losses, from answers [K, m, classes]: no model's gradient depends on another's."""
    logits = read(answers.flatten(0, 1)[graph.labelled])
    # classes before nodes, [1, C, L]: four times faster on a CPU, which then takes many nodes at once
    losses = nn.functional.cross_entropy(logits.t()[None], graph.y[None], reduction="none")
    return (losses * graph.weight).sum()


@dataclass(frozen=True)
class _Own:
    """What a module does on its own in one step without dropout."""

    model: nn.Module  # a copy, with the gradients and the buffers of this step
    read: Callable[[Any], Tensor]
    logits: Tensor

    @classmethod
    def of(cls, model: nn.Module, graph: Data, arguments: Arguments, classes: int) -> _Own:
        call = functools.partial(arguments.call, data=with_edges(graph))
        read = logits_of(model, graph.x, graph.edge_index, classes=classes, call=call)
        model.train()
        with DrawnBy(None):
            logits = read(call(model))
        labelled = graph.y >= 0
        nn.functional.cross_entropy(logits[labelled], graph.y[labelled]).backward()
        return cls(model, read, logits.detach())


def _tried(
    plan: Plan, models: Sequence[nn.Module], graph: BatchedGraph, own: Sequence[_Own]
) -> tuple[str | None, dict[str, int]]:
    """What differs in a batch from the modules' own steps, in words, or None; and the widths of all values."""
    batch = ModuleBatch(models)
    values = BatchedProgram(plan.program, batch, graph, apart=plan.apart)()
    widths = {step.name: _width(values[step.name], graph) for step in plan.program.steps}
    answers = values[plan.program.output]
    mean_losses(answers, plan.read, graph).backward()
    for k, alone in enumerate(own):
        if not _close(plan.read(answers[k, : len(graph.own[k].x)]), alone.logits):
            return "its answers are others", widths
        gradients = {name: parameter.grad for name, parameter in alone.model.named_parameters()}
        largest = max((float(one.abs().max()) for one in gradients.values() if one is not None), default=0.0)
        for name, gradient in gradients.items():
            stacked = batch.parameters[name].grad
            found = None if stacked is None else stacked[k]
            if not _close(found, gradient, at_least=_ROUNDING_OF_ALL * largest):
                return f"the gradient of {name} is another", widths
        if any(not _close(batch.buffers[name][k], buffer) for name, buffer in alone.model.named_buffers()):
            return "its buffers are others", widths
    return None, widths


def _width(value: Any, graph: BatchedGraph) -> int:
    """Numbers per node, rounded up."""
    return -(-value.numel() // graph.nodes) if isinstance(value, Tensor) else int(value.rows.shape[1]) // graph.count


def _close(found: Tensor | None, wanted: Tensor | None, *, at_least: float = 1e-7) -> bool:
    """Equal up to rounding; NaN equals nothing."""
    if found is None or wanted is None:
        return found is wanted
    if found.shape != wanted.shape:
        return False
    if not wanted.numel():
        return True
    apart = (found.detach().double() - wanted.detach().double()).abs().max()
    return bool(apart <= max(at_least, _ROUNDING * float(wanted.abs().max())))


@torch.no_grad()
def _not_row_wise(program: Program, models: Sequence[nn.Module], graph: BatchedGraph) -> frozenset[str]:
    """The steps whose values differ from those of the modules themselves; layers among them are left as they are."""
    with DrawnBy(None):
        alone = [
            program.run(Asked(copy.deepcopy(model).train()), {name: getattr(one, name, None) for name in INPUTS})
            for model, one in zip(models, graph.own, strict=True)
        ]
    run, batch = BatchedProgram(program, ModuleBatch(models), graph), ModuleBatch(models)
    exact = BatchedProgram(program, batch, graph, apart=[step.name for step in program.steps])
    known: dict[str, Any] = {"x": graph.x, **graph.edge_values}
    apart = []
    for step in program.steps:
        if isinstance(step, RowStep) and step.on == "edges":  # done for one model after another anyway
            known[step.name] = exact.runs[step.name](known)
            continue
        wanted = [own[step.name] for own in alone]
        if any(
            not isinstance(one, Tensor) or len(one) != len(own.x) for one, own in zip(wanted, graph.own, strict=True)
        ):
            raise NoProgram(f"the value {step.name} has not one row per node")
        try:
            together = run.runs[step.name](known)
            rows = [graph.dense(together)[k, : len(one)] for k, one in enumerate(wanted)]
            same = all(_close(found, one) for found, one in zip(rows, wanted, strict=True))
        except Exception:
            same = False
        if not same:
            apart.append(step.name)
            together = exact.runs[step.name](known)
        known[step.name] = together
    return frozenset(apart)
