"""A program for several models at once: the same steps, on values [K, m, width] with each model's own weights.

A step that is not known to work in a batch is done for one model after another, each on its own nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from glasshouse.graph.layers.layer_type import LAYER_TYPES
from glasshouse.graph.programs.program import MessageStep, Program, RowStep, Step, Value, arguments_of
from glasshouse.graph.programs.rows import Weights, weights_of
from glasshouse.graph.programs.trace import Asked
from glasshouse.graph.training.many.graph import BatchedGraph, DrawnBy
from glasshouse.graph.training.many.layers import batched_layer
from glasshouse.graph.training.many.rows import BatchedRows, rows_of
from glasshouse.training.batches import ModuleBatch


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
    known = kind.can_train(layer) and layer.flow == "source_to_target"
    if not known or not all(rows_of(getattr(layer, part)) for part in kind.modules):
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
