"""A step of a program for one model after another, each on its own nodes: for what is not known to work in a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from glasshouse.graph.programs.program import MessageStep, Step, filled
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Weights, weights_of
from glasshouse.graph.training.dropout import DrawnBy

__all__ = ["apart_step"]


def apart_step(
    step: Step, roots: Sequence[nn.Module], graph: BatchedGraph, weights: Weights
) -> Callable[[Mapping[str, Any]], Tensor]:
    """The step as each model's own module does it, on its own graph without the nodes that fill it up.

    So it may look at the whole graph, as GraphNorm does. It is exact, but saves only the time of the other steps.

    Args:
        step: a layer or row-wise operations.
        roots: the K traced models.
        graph: their graphs.
        weights: of the whole model, by name, each [K, ...]; buffers are changed in place.
    """
    if isinstance(step, MessageStep):
        calls: list[nn.Module] = [root.get_submodule(step.module) for root in roots]
        own = weights_of(weights, step.module)
        args, kwargs, names = step.args, dict(step.kwargs), (*step.inputs, *step.edges)
    else:
        calls = [step.function(root) for root in roots]
        own = {name: weights[name.removeprefix("model.")] for name in calls[0].state_dict()}
        args, kwargs, names = (), {}, step.inputs
    per_edge = set(step.edges) if isinstance(step, MessageStep) else set(names if step.on == "edges" else ())
    random = graph.random or [None] * graph.count

    def run(values: Mapping[str, Any]) -> Tensor:
        given = {name: _own(values[name], graph, per_edge=name in per_edge) for name in names}
        # in one go: a slice per model would give each weight K gradients as large as all of them
        mine = {name: tensor.unbind(0) for name, tensor in own.items()}
        results = []
        for k, (call, one) in enumerate(zip(calls, graph.own, strict=True)):
            at_hand = {**{name: parts[k] for name, parts in given.items()}, "edge_index": one.edge_index}
            if isinstance(step, MessageStep):
                called: Any = filled(args, at_hand)
            else:
                called = tuple(at_hand[name].clone() if step.changes_inputs else at_hand[name] for name in names)
            with DrawnBy(random[k]):
                result = functional_call(
                    call, {name: parts[k] for name, parts in mine.items()}, called, filled(kwargs, at_hand)
                )
            results.append(result)
        if isinstance(step, MessageStep) or step.on == "nodes":
            return torch.stack([_padded(result, graph.size) for result in results])
        return torch.cat(results)

    return run


def _own(value: Any, graph: BatchedGraph, *, per_edge: bool) -> list[Tensor]:
    """One tensor per model: its own nodes' rows, or its own edges'."""
    if per_edge:
        return list(value.split([one.edge_index.shape[1] for one in graph.own]))
    if value is graph.x:
        return [one.x for one in graph.own]
    return [part[: len(one.x)] for part, one in zip(graph.dense(value).unbind(0), graph.own, strict=True)]


def _padded(rows: Tensor, size: int) -> Tensor:
    return torch.cat([rows, rows.new_zeros(size - len(rows), *rows.shape[1:])])
