"""Whether a module may be trained in a batch: its first step there must be its own first step, up to rounding."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.graph.data.subgraph import InducedGraph
from glasshouse.graph.models.calls import Arguments, bind_arguments
from glasshouse.graph.models.edge_values import held_values
from glasshouse.graph.programs.program import INPUTS, NoProgram, Program, RowStep
from glasshouse.graph.programs.trace import Asked, traced
from glasshouse.graph.training.many.graph import BatchedGraph, DrawnBy
from glasshouse.graph.training.many.program import BatchedProgram, call_obstacle
from glasshouse.training.batches import ModuleBatch, logits_of

_ROUNDING = 1e-4  # of the largest value of a tensor: sums in another order, in float32
_ROUNDING_OF_ALL = 1e-5  # of the largest gradient of a model: one that is 0 in truth, as before BatchNorm, is noise


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How the models of a trainer are trained together."""

    program: Program  # what each of them does
    apart: frozenset[str]  # names of steps that are done for one model after another
    read: Callable[[Any], Tensor]  # from answers to logits
    widths: Mapping[str, int]  # how many numbers per node each step makes, by its name


def planned(models: Sequence[nn.Module], graphs: Sequence[InducedGraph], *, classes: int) -> Plan:
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

    read: Callable[[Any], Tensor]
    logits: Tensor
    gradients: dict[str, Tensor | None]
    buffers: dict[str, Tensor]

    @classmethod
    def of(cls, model: nn.Module, graph: InducedGraph, arguments: Arguments, classes: int) -> _Own:
        call = functools.partial(arguments.call, data=graph.shown())
        read = logits_of(model, graph.x, graph.edge_index, classes=classes, call=call)
        model.train()
        with DrawnBy(None):
            logits = read(call(model))
        labelled = graph.y >= 0
        nn.functional.cross_entropy(logits[labelled], graph.y[labelled]).backward()
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        return cls(read, logits.detach(), gradients, dict(model.named_buffers()))


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
        known = [one for one in alone.gradients.values() if one is not None]
        largest = max((float(one.abs().max()) for one in known), default=0.0)
        for name, gradient in alone.gradients.items():
            stacked = batch.parameters[name].grad
            found = None if stacked is None else stacked[k]
            if not _close(found, gradient, at_least=_ROUNDING_OF_ALL * largest):
                return f"the gradient of {name} is another", widths
        if any(not _close(batch.buffers[name][k], buffer) for name, buffer in alone.buffers.items()):
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
            program.run(Asked(copy.deepcopy(model).train()), {name: getattr(one, name) for name in INPUTS})
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
