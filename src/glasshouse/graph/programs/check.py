"""A traced program is believed after it was tried: rows are rows, layers see as far as counted, answers are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.core.errors import InputError, first_line
from glasshouse.core.outputs import unwrapped
from glasshouse.graph.layers.layer_type import counted_layers
from glasshouse.graph.programs.program import (
    INPUTS,
    MessageStep,
    NoProgram,
    Program,
    RowStep,
    Step,
    toggled_type,
    tolerance,
)
from glasshouse.graph.programs.reach import reach_of
from glasshouse.graph.programs.trace import Asked

_EDGES = 512  # of the graph whose nodes the program is tried on
_ROWS = 24  # rows on which operations are tried


def sample_graph(data: Data) -> Data:
    """A part of a graph to try a program on: the ends of some edges, all edges between them, and a few other nodes."""
    source = torch.Generator().manual_seed(0)
    edges = data.edge_index
    some = edges[:, torch.randperm(edges.shape[1], generator=source)[:_EDGES].to(edges.device)]
    others = torch.randint(len(data.x), (8,), generator=source).to(edges.device)
    chosen = torch.zeros(len(data.x), dtype=torch.bool, device=edges.device)
    chosen[torch.cat([some.flatten(), others])] = True
    whole = {name: getattr(data, name, None) for name in INPUTS}
    return Data(**{name: value for name, value in whole.items() if value is not None}).subgraph(chosen)


@torch.no_grad()
def checked_program(program: Program, root: Asked, data: Data) -> Program:
    """A program with the reach of its layers, tried on a part of the graph; `NoProgram` says what failed."""
    graph = sample_graph(data)
    given = {name: getattr(graph, name, None) for name in INPUTS}
    try:
        values = program.run(root, given)
        answer = unwrapped(root(**given))
    except Exception as error:
        raise NoProgram(f"its program fails on a part of the graph ({first_line(error)})") from error
    if not _same(values[program.output], answer):
        raise NoProgram("its program gives other answers than the model itself")
    steps: list[Step] = []
    call: Any
    for step, call in program.calls(root):
        if isinstance(step, RowStep):
            _check_rows(step, call, values, root)
            steps.append(step)
        else:
            steps.append(_with_reach(step, call, values, len(graph.x)))
    # engines compute everything in the type of the answer
    made = [*(step.name for step in steps if isinstance(step, MessageStep)), program.output]
    types = dict.fromkeys(str(values[name].dtype).removeprefix("torch.") for name in made)
    if len(types) > 1:
        raise NoProgram(f"the type of its numbers changes on the way ({' to '.join(types)})")
    return replace(program, steps=tuple(steps))


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    scale = float(other.abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=tolerance("another way", other.dtype) * max(scale, 1e-12))


def _check_rows(step: RowStep, call: Any, values: Mapping[str, Any], root: nn.Module) -> None:
    """Some rows alone, in another order, must give the same rows; twice as many rows must give as many."""
    inputs = [values[name] for name in step.inputs]
    if not inputs or not all(isinstance(one, Tensor) and one.ndim and len(one) == len(inputs[0]) for one in inputs):
        raise NoProgram(f"its step {_named(step, root)} does not work on rows")
    whole = values[step.name]
    if not isinstance(whole, Tensor) or not whole.ndim or len(whole) != len(inputs[0]):
        raise NoProgram(f"its step {_named(step, root)} does not give one row per node")
    source = torch.Generator().manual_seed(0)
    chosen = torch.randperm(len(inputs[0]), generator=source)[:_ROWS].to(inputs[0].device)
    for rows in (chosen, chosen[: max(1, len(chosen) // 3)], torch.cat([chosen, chosen])):
        try:
            found = call(*[one[rows].clone() for one in inputs])
        except Exception as error:
            raise NoProgram(f"its step {_named(step, root)} does not work on some rows alone") from error
        if not _same(found, whole[rows]):
            raise NoProgram(f"its step {_named(step, root)} mixes the rows of nodes")


def _named(step: RowStep, root: nn.Module) -> str:
    """The calls of a step, as a user would know them: ``norms.0 (GraphNorm)`` or ``mean``."""
    names = []
    for node in step.graph.nodes:
        if node.op == "call_module":
            path = str(node.target)
            names.append(f"{path.removeprefix('model.')} ({type(root.get_submodule(path)).__name__})")
        elif node.op in ("call_function", "call_method"):
            names.append(str(getattr(node.target, "__name__", node.target)))
    return ", ".join(names)


def _with_reach(step: MessageStep, layer: Any, values: Mapping[str, Any], count: int) -> MessageStep:
    """The step with its layer's reach: counted if its type is known, else measured."""
    inputs = [values[name] for name in step.inputs]
    name = f"{step.module.removeprefix('model.')} ({type(layer).__name__})"
    if not inputs or not all(isinstance(one, Tensor) and one.ndim == 2 and len(one) == count for one in inputs):
        raise NoProgram(f"its layer {name} is not given one row per node")
    answer = values[step.name]
    if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != count:
        raise NoProgram(f"its layer {name} does not answer with one row per node")
    kind = toggled_type(layer, step)
    if kind is not None:
        return replace(step, hops=kind.steps(layer), both_ways=kind.both_ways)
    rows = torch.cat([one.detach().to(answer.dtype) for one in inputs], dim=1)
    widths, least = [one.shape[1] for one in inputs], counted_layers(layer)

    def ask(x: Tensor, edge_index: Tensor, edges: Mapping[str, Tensor]) -> Tensor:
        given = dict(zip(step.inputs, x.split(widths, dim=1), strict=True))
        args, kwargs = step.arguments({**given, **edges, "edge_index": edge_index})
        return layer(*args, **kwargs).detach()  # type: ignore[no-any-return]

    edges = {name: values[name] for name in step.edges}
    try:
        found = reach_of(ask, rows, edges, both_ways=True, expected=least)
    except InputError as error:
        raise NoProgram(f"its layer {name} cannot be asked about a part of the graph") from error
    except Exception as error:
        raise NoProgram(f"its layer {name} fails on a small graph ({type(error).__name__})") from error
    if found.everywhere:
        raise NoProgram(f"its layer {name} looks at the whole graph")
    hops, by_degree = max(least, found.hops, 1), found.leaving or found.senders
    return replace(step, hops=hops, by_degree=by_degree, both_ways=found.leaving)
