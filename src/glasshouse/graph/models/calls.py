"""How a model is called: one graph, or features, edges and those values of edges that it has parameters for.

What it takes is found by trying, and what it answers is checked.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from glasshouse.core.errors import InputError, first_line
from glasshouse.core.outputs import check_order_of_outputs, unwrapped
from glasshouse.graph.models.edge_values import HeldValues, edge_values, held_values, with_edges
from glasshouse.graph.models.networks import Model
from glasshouse.graph.programs.reach import rounding

EDGE_NAMES = {  # what users call such parameters -> the values that are meant
    "edge_weight": "edge_weight",
    "edge_weights": "edge_weight",
    "edge_attr": "edge_attr",
    "edge_attrs": "edge_attr",
    "edge_features": "edge_attr",
    "edge_type": "edge_type",
    "edge_types": "edge_type",
}
_OTHER = {"edge_weight": "edge_attr", "edge_attr": "edge_weight"}
_GRAPH_NAMES = ("data", "graph")  # a first parameter with this name takes the whole graph
PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """How a model is called on graphs whose edges have certain values."""

    takes_data: bool = False  # whether it is called with one `Data`, which then holds all values of the edges
    # otherwise it is called with ``x``, ``edge_index`` and these named arguments: pairs of a parameter and the values
    # that it gets, such as ``("edge_weight", "edge_attr")``
    bound: tuple[tuple[str, str], ...] = ()
    held: HeldValues = ()  # the values that the edges of these graphs have
    ignored: tuple[str, ...] = ()  # those of them that a model which takes a `Data` was found not to look at

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the values that the model does not use."""
        given = {name for _, name in self.bound}
        return self.ignored if self.takes_data else tuple(name for name, _ in self.held if name not in given)

    def named(self, data: Any) -> dict[str, Tensor]:
        """The named arguments for a graph."""
        values = edge_values(data)
        return {parameter: as_weights(values[name], parameter, data.x.dtype) for parameter, name in self.bound}

    def call(self, model: Callable[..., Any], data: Any) -> Any:
        """What the model returns for a graph."""
        if self.takes_data:
            return model(with_edges(data))
        return model(data.x, data.edge_index, **self.named(data))


def bind_arguments(model: Any, held: HeldValues = ()) -> Arguments:
    """How a model is called, from its signature alone; refused if a parameter without a default cannot be filled.

    A parameter ``edge_weight`` gets the weights of the edges, or features of one axis [E]; ``edge_attr`` gets the
    features, or else the weights. Other parameters keep their defaults, ``batch`` among them. Values that one of
    PyTorch Geometric's own models says it does not support are not passed.

    Example:
        >>> from torch_geometric.nn import GAT, GCN
        >>> weights = (("edge_weight", 1),)
        >>> bind_arguments(GCN(4, 8, 2), weights).bound
        (('edge_weight', 'edge_weight'),)
        >>> bind_arguments(GAT(4, 8, 2), weights).unused  # it has no edge_dim
        ('edge_weight',)
    """
    parameters = parameters_of(model)
    placed = [one for one in parameters if one.kind in PLACED]
    is_open = any(one.kind in _OPEN for one in parameters)
    if placed and not is_open and (len(placed) == 1 or _is_graph(placed)):
        return Arguments(takes_data=True, held=held)
    rest = [one for one in parameters if one not in placed[:2] and one.kind not in _OPEN]
    wanted = [one.name for one in rest if one.name in EDGE_NAMES and not declines(model, EDGE_NAMES[one.name])]
    axes = dict(held)
    bound = {name: EDGE_NAMES[name] for name in wanted if EDGE_NAMES[name] in axes}
    for name in wanted:
        other = value_for(name, axes)
        if name not in bound and other is not None and other not in bound.values():
            bound[name] = other
    for one in rest:
        if one.default is inspect.Parameter.empty and one.name not in bound:
            raise InputError(_refusal(one.name, axes))
    return Arguments(bound=tuple(bound.items()), held=held)


def value_for(parameter: str, axes: Mapping[str, int]) -> str | None:
    """Which of the values of edges, each with its number of axes, a parameter gets: those that it means, or others."""
    meant = EDGE_NAMES[parameter]
    if meant in axes:
        return meant
    if meant == "edge_type":
        return None
    other = _OTHER[meant]
    return other if other in axes and (meant == "edge_attr" or axes[other] == 1) else None


def as_weights(value: Tensor, parameter: str, dtype: torch.dtype) -> Tensor:
    """Values of edges for a parameter: codes that are used as weights become numbers with fractions."""
    is_weight = EDGE_NAMES.get(parameter) == "edge_weight" and not value.is_floating_point()
    return value.to(dtype) if is_weight else value


def parameters_of(model: Any) -> list[inspect.Parameter]:
    """The parameters of a call; none if they cannot be known, as with some built-in functions."""
    module = getattr(model, "_orig_mod", model)  # torch.compile hides the signature
    try:
        return list(inspect.signature(module.forward if isinstance(module, nn.Module) else module).parameters.values())
    except (TypeError, ValueError):
        return []


def _is_graph(placed: list[inspect.Parameter]) -> bool:
    """Whether the first parameter is a graph and all others may be left out."""
    first, *others = placed
    return first.name in _GRAPH_NAMES and all(one.default is not inspect.Parameter.empty for one in others)


def declines(model: Any, name: str) -> bool:
    """Whether a model of PyTorch Geometric says that it cannot use such values, although it has a parameter for them.

    `GraphSAGE` has both parameters and raises if they are given; attention layers without ``edge_dim`` have no weights
    for features of edges.
    """
    module = getattr(model, "_orig_mod", model)
    supported = getattr(module, f"supports_{name}", None)
    if supported is False:
        return True
    if name != "edge_attr" or not (supported or isinstance(module, MessagePassing)):
        return False
    widths = [layer.edge_dim for layer in module.modules() if hasattr(layer, "edge_dim")]
    return bool(widths) and all(width is None for width in widths)


def _refusal(parameter: str, axes: dict[str, int]) -> str:
    if parameter not in EDGE_NAMES:
        return (
            f"model: it needs the argument {parameter}, which the graph does not give. Give it a default, or wrap the "
            f"model in a function of x and edge_index."
        )
    name = EDGE_NAMES[parameter]
    has = "data.edge_attr has several columns" if axes else f"the graph has no {name}"
    return f"model: it needs the argument {parameter}, but {has}. Set data.{name}, with one entry per edge."


def answer_of(model: Any, data: Data, arguments: Arguments, *, classes: int | None = None) -> Tensor:
    """A model's answers about all nodes of a graph, [n, classes], as it gives them: logits or probabilities.

    How many ``classes`` there are matters if a model is called for the first time: one of several arrays must be the
    logits.
    """
    whole, count = arguments.call(model, data), len(data.x)
    if classes is not None:
        check_order_of_outputs(whole, classes)
    answer = unwrapped(whole)
    if not isinstance(answer, Tensor):
        answer = torch.as_tensor(answer, device=data.x.device)
    if not answer.is_floating_point():
        raise InputError(
            f"model: it answered with whole numbers ({answer.dtype}), which do not show how sure it is. Give logits "
            f"or probabilities of all classes."
        )
    if answer.ndim != 2 or len(answer) != count:
        raise InputError(
            f"model: it answered {count} nodes with shape {list(answer.shape)}; expected [{count}, classes], one "
            f"logit per class for every node."
        )
    return answer.detach()


def try_call(model: Model, data: Data, *, classes: int | None = None) -> tuple[Arguments, Tensor]:
    """What a model is called with, found by trying it on a graph, and its answers there [n, classes].

    What its signature says is tried first, then the other of one `Data` or ``x`` and ``edge_index``. If it answers with
    several arrays, the number of classes shows whether the first of them holds the logits.
    """
    guess = bind_arguments(model, held_values(data))
    faults = []
    for arguments in (guess, Arguments(takes_data=not guess.takes_data, held=guess.held)):
        try:
            answer = answer_of(model, data, arguments, classes=classes)
        except InputError:
            raise
        except Exception as error:
            faults.append(first_line(error))
            continue
        rounding(lambda *_: answer_of(model, data, arguments), data.x, data.edge_index, answer)  # noqa: B023 (used at once)
        if arguments.takes_data:
            arguments = replace(arguments, ignored=_ignored(model, data, arguments, answer))
        return arguments, answer
    raise InputError(_uncallable(guess, data, faults[0]))


def call_first(model: Model, data: Data, arguments: Arguments) -> Any:
    """What a model returns when it is called for the first time; if it fails, one line says what it was given."""
    try:
        return arguments.call(model, data)
    except (InputError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(_uncallable(arguments, data, first_line(error))) from error


def _ignored(model: Model, data: Data, arguments: Arguments, answer: Tensor) -> tuple[str, ...]:
    """Values of edges without which a model that takes a `Data` answers the same."""
    found = []
    for name, _ in arguments.held:
        without = with_edges(data)
        del without[name]
        with contextlib.suppress(Exception):  # it needs them
            if torch.allclose(answer_of(model, without, arguments), answer):
                found.append(name)
    return tuple(found)


def _uncallable(arguments: Arguments, data: Data, fault: str) -> str:
    if arguments.takes_data:
        held = ", ".join(sorted(data.keys()))
        return f"model: it cannot be called as model(data): {fault.rstrip('.')}. The data has {held}."
    given = [f"{parameter}=data.{name}" for parameter, name in arguments.bound]
    advice = "".join(f" Set data.{name} = None if it was trained without." for _, name in arguments.bound)
    return f"model: it cannot be called as model({', '.join(['x', 'edge_index', *given])}): {fault}{advice}"
