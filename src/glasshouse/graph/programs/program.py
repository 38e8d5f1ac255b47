"""A program: what a user's module does, as a short list of message-passing layers and row-wise steps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, fx, nn

from glasshouse.graph.layers.layer_type import LAYER_TYPES, LayerType

INPUTS = ("x", "edge_index", "edge_weight", "edge_attr", "edge_type")  # the values that a program starts from


# Up to which share of the largest value two results are the same: where models compute in float64, and elsewhere.
TOLERANCES = {
    "one call": (1e-11, 2e-6),  # the same call, with a change that does not reach this answer
    "another graph": (1e-9, 1e-5),  # edges were added: sums in another order
    "another way": (1e-9, 1e-4),  # a program in place of the model
    "steady": (1e-3, 1e-3),  # two answers to one query that differ by more have another cause than rounding
    "engine": (1e-3, 1e-3),  # S, or 1 if S is smaller: float32 stays a hundred times below, a wrong reach is far above
}


def tolerance(what: str, dtype: torch.dtype = torch.float32) -> float:
    """The share of the largest value below which differences are rounding; see `TOLERANCES`."""
    return TOLERANCES[what][dtype is not torch.float64]


class NoProgram(Exception):  # noqa: N818 (it is an answer, not a fault)
    """A module has no program; the message says why, in one line for the log and the report."""


@dataclass(frozen=True)
class Value:
    """The place of a value in the arguments of a call, by its name."""

    name: str


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Arguments with every `Value` replaced; lists, tuples and dicts are searched."""
    if isinstance(template, Value):
        return values[template.name]
    if isinstance(template, dict):
        return {name: filled(part, values) for name, part in template.items()}
    if isinstance(template, (list, tuple)):
        return type(template)(filled(part, values) for part in template)
    return template


@dataclass(frozen=True, kw_only=True)
class MessageStep:
    """One call of a message-passing layer."""

    name: str  # of the value that it makes
    module: str  # path of the layer in the traced module
    inputs: tuple[str, ...]  # names of the node values that it reads
    edges: tuple[str, ...]  # names of the edge values that it reads, without ``edge_index``
    args: tuple[Any, ...]  # positional arguments, with a `Value` for each value
    kwargs: Mapping[str, Any]  # arguments by name, likewise
    hops: int = 1  # how many steps along the edges one call takes
    by_degree: bool = True  # whether a message depends on its sender's own senders, as GCN's does on their number
    # whether a row depends on edges that lead away from it or from its senders, as on their number. It can then be
    # computed from a part of the graph only if all edges go both ways
    both_ways: bool = False

    def arguments(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What the layer is called with, from all values by name."""
        return filled(self.args, values), filled(dict(self.kwargs), values)


@dataclass(frozen=True, kw_only=True)
class RowStep:
    """Operations that make row i of their result from row i of their inputs."""

    name: str  # of the value that it makes
    inputs: tuple[str, ...]  # names of the values that it reads, in the order of the graph's placeholders
    graph: fx.Graph  # the operations; their modules are found in the traced module
    on: Literal["nodes", "edges"] = "nodes"  # whether its rows are nodes or edges
    changes_inputs: bool = False  # whether an operation works in place, so that inputs must be copied first

    def arguments(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What the operations are called with, from all values by name; copies if they would change."""
        inputs = [values[name] for name in self.inputs]
        return [one.clone() if self.changes_inputs else one for one in inputs], {}

    def function(self, root: nn.Module) -> fx.GraphModule:
        """The operations with the modules of one traced model; a call takes and gives tensors [rows, width]."""
        return fx.GraphModule(root, self.graph)

    def call(self, root: nn.Module) -> Callable[..., Any]:
        """The same without a module of its own: much quicker to make, for a few calls."""
        return functools.partial(_interpreted, self.graph, root)


def _interpreted(graph: fx.Graph, root: nn.Module, *inputs: Any) -> Any:
    """The operations of a graph one after another, with the modules of one traced model."""
    values: dict[fx.Node, Any] = {}
    given = iter(inputs)
    for node in graph.nodes:
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        if node.op == "placeholder":
            values[node] = next(given, *node.args)  # a default, if it has one
        elif node.op == "get_attr":
            values[node] = functools.reduce(getattr, str(node.target).split("."), root)
        elif node.op == "call_module":
            values[node] = root.get_submodule(str(node.target))(*args, **kwargs)
        elif node.op == "call_method":
            values[node] = getattr(args[0], str(node.target))(*args[1:], **kwargs)
        elif node.op == "call_function":
            values[node] = node.target(*args, **kwargs)
        else:
            break
    return args[0]  # of the output


Step = MessageStep | RowStep


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """The calls of a module in order, from the features to its answers.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> from glasshouse.graph.programs.trace import traced
        >>> program = traced(GCNConv(3, 2))
        >>> [type(step).__name__ for step in program.steps], program.hops
        (['MessageStep'], 1)
    """

    # message-passing layers and row-wise operations; each reads values that were made before it
    steps: tuple[Step, ...]
    output: str  # name of the value that holds the answers [n, classes]
    signature: tuple[object, ...] = ()  # equal for two programs exactly if they do the same up to their weights

    @property
    def messages(self) -> list[MessageStep]:
        """Its message-passing calls, in order."""
        return [step for step in self.steps if isinstance(step, MessageStep)]

    @property
    def hops(self) -> int:
        """L: the most steps along the edges on any way from the features to the answers."""
        reach: dict[str, int] = {}
        for step in self.steps:
            own = step.hops if isinstance(step, MessageStep) else 0
            reach[step.name] = own + max((reach.get(name, 0) for name in step.inputs), default=0)
        return reach.get(self.output, 0)

    @property
    def both_ways(self) -> bool:
        """Whether it can be taken apart only on graphs whose edges all go both ways."""
        return any(step.both_ways for step in self.messages)

    @property
    def edge_values(self) -> tuple[str, ...]:
        """Which values of edges it reads: of ``edge_weight`` and ``edge_attr``."""
        read = {name for step in self.steps for name in (*step.inputs, *getattr(step, "edges", ()))}
        return tuple(name for name in INPUTS[2:] if name in read)

    def run(self, root: nn.Module, values: Mapping[str, Tensor | None]) -> dict[str, Any]:
        """Every value of the program for one traced model on a whole graph; the plain twin of all fast engines."""
        found: dict[str, Any] = dict(values)
        for step, call in self.calls(root):
            args, kwargs = step.arguments(found)
            found[step.name] = call(*args, **kwargs)
        return found

    def calls(self, root: nn.Module) -> Iterator[tuple[Step, Callable[..., Any]]]:
        """Each step with the layer or the function of one traced model."""
        for step in self.steps:
            yield step, root.get_submodule(step.module) if isinstance(step, MessageStep) else step.call(root)


def arguments_of(layer: nn.Module, step: MessageStep) -> dict[str, Any]:
    """The arguments of a recorded call by the names of the layer's parameters, without those that are None."""
    kind: Any = type(layer)
    try:
        bound = _parameters(kind).bind(layer, *step.args, **step.kwargs)
    except TypeError:  # the layer itself will say what is wrong
        return dict(step.kwargs)
    given = list(bound.arguments.items())[1:]  # without the layer itself
    return {name: value for name, value in given if value is not None}


@functools.cache
def _parameters(kind: Any) -> inspect.Signature:
    return inspect.signature(kind.forward)


def toggled_type(layer: Any, step: MessageStep) -> LayerType | None:
    """The type of a layer, if its formula is right for the layer as it is called and evaluated here."""
    kind, given = LAYER_TYPES.get(type(layer)), arguments_of(layer, step)
    if kind is None or not kind.takes(layer, given) or not all(isinstance(one, Value) for one in given.values()):
        return None
    return kind if kind.toggles(layer) else None
