"""How a model is called: one graph, or features, edges and those values of edges that it has parameters for.

What it takes is found by trying, and what it answers is checked. A classifier of whole graphs is called for a batch.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing

from glasshouse.core.errors import InputError, first_line
from glasshouse.core.outputs import check_order_of_outputs, unwrapped
from glasshouse.graph.models.networks import Model
from glasshouse.graph.models.tensor_cache import on_device
from glasshouse.graph.programs.program import tolerance
from glasshouse.graph.programs.reach import TWO_ANSWERS, rounding

EDGE_VALUES = ("edge_weight", "edge_attr", "edge_type")

HeldValues = tuple[tuple[str, int], ...]  # names of the values that a graph has, each with its number of axes


def held_values(data: Any) -> HeldValues:
    """Which values the edges of a graph have: each name with its number of axes, 1 for [E] and 2 for [E, d]."""
    found = ((name, getattr(data, name, None)) for name in EDGE_VALUES)
    return tuple((name, value.ndim) for name, value in found if value is not None)


def edge_values(data: Any) -> dict[str, Tensor]:
    """The values that the edges of a graph have, by name, in the type in which a model computes.

    Weights, and features with fractions, get the type of ``x``, since layers multiply them with it. Features that are
    whole numbers stay so: they may be codes that a model looks up.
    """
    dtype = data.x.dtype if data.x.is_floating_point() else torch.float32
    found = {}
    for name, _ in held_values(data):
        value = getattr(data, name)
        is_code = name != "edge_weight" and not value.is_floating_point()
        found[name] = value.to(data.x.device, value.dtype if is_code else dtype)
    return found


def with_edges(data: Any, chosen: Tensor | None = None, *, device: torch.device | None = None) -> Data:
    """All that a model may be given of a graph: features, and edges with their values; no labels.

    Edges are all or the ``chosen`` ones, bool [E] or positions [e]. The ``device`` is by default that of ``x``.

    Example:
        >>> edges = torch.tensor([[0, 1, 0], [1, 0, 1]])
        >>> data = Data(x=torch.eye(2), edge_index=edges, edge_weight=torch.tensor([1.0, 2.0, 3.0]))
        >>> part = with_edges(data, torch.tensor([True, False, True]))
        >>> part.edge_index.tolist(), part.edge_weight.tolist()
        ([[0, 0], [1, 1]], [1.0, 3.0])
    """
    device = device or data.x.device
    x, edge_index = on_device(data.x, device), on_device(data.edge_index, device)
    values = {name: on_device(value, device) for name, value in edge_values(data).items()}
    if chosen is not None:
        chosen = chosen.to(device)
        edge_index, values = edge_index[:, chosen], {name: value[chosen] for name, value in values.items()}
    return Data(x=x, edge_index=edge_index, **values)


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
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
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
        return {parameter: _as_weights(values[name], parameter, data.x.dtype) for parameter, name in self.bound}

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
    parameters = _parameters_of(model)
    placed = [one for one in parameters if one.kind in _PLACED]
    is_open = any(one.kind in _OPEN for one in parameters)
    optional = all(one.default is not inspect.Parameter.empty for one in placed[1:])
    if placed and not is_open and (len(placed) == 1 or (placed[0].name in _GRAPH_NAMES and optional)):
        return Arguments(takes_data=True, held=held)
    rest = [one for one in parameters if one not in placed[:2] and one.kind not in _OPEN]
    wanted = [one.name for one in rest if one.name in EDGE_NAMES and not _declines(model, EDGE_NAMES[one.name])]
    axes = dict(held)
    bound = {name: EDGE_NAMES[name] for name in wanted if EDGE_NAMES[name] in axes}
    for name in wanted:
        other = _value_for(name, axes)
        if name not in bound and other is not None and other not in bound.values():
            bound[name] = other
    for one in rest:
        if one.default is inspect.Parameter.empty and one.name not in bound:
            raise InputError(_refusal(one.name, axes))
    return Arguments(bound=tuple(bound.items()), held=held)


def _value_for(parameter: str, axes: Mapping[str, int]) -> str | None:
    """Which of the values of edges, each with its number of axes, a parameter gets: those that it means, or others."""
    meant = EDGE_NAMES[parameter]
    if meant in axes:
        return meant
    if meant == "edge_type":
        return None
    other = _OTHER[meant]
    return other if other in axes and (meant == "edge_attr" or axes[other] == 1) else None


def _as_weights(value: Tensor, parameter: str, dtype: torch.dtype) -> Tensor:
    """Values of edges for a parameter: codes that are used as weights become numbers with fractions."""
    is_weight = EDGE_NAMES.get(parameter) == "edge_weight" and not value.is_floating_point()
    return value.to(dtype) if is_weight else value


def _parameters_of(model: Any) -> list[inspect.Parameter]:
    """The parameters of a call; none if they cannot be known, as with some built-in functions."""
    module = getattr(model, "_orig_mod", model)  # torch.compile hides the signature
    try:
        return list(inspect.signature(module.forward if isinstance(module, nn.Module) else module).parameters.values())
    except (TypeError, ValueError):
        return []


def _declines(model: Any, name: str) -> bool:
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


_FIELDS = {  # what users call a parameter -> what it gets of a batch
    "batch": "batch",
    "batch_index": "batch",
    "batch_idx": "batch",
    "batch_size": "num_graphs",
    "num_graphs": "num_graphs",
    "num_nodes": "num_nodes",
}
_IN_PLACE = ("x", "edge_index")  # of the first two parameters, whatever they are called
_KNOWN = {*_FIELDS, *EDGE_NAMES, *_IN_PLACE}


@dataclass(frozen=True, kw_only=True)
class GraphCall:
    """How a classifier of graphs is called."""

    takes_data: bool = False  # whether it is called with one `Batch`
    # otherwise, pairs of a parameter and what it gets of the batch, such as ``("edge_weight", "edge_attr")``
    bound: tuple[tuple[str, str], ...] = ()

    def __call__(self, model: Callable[..., Any], batch: Batch) -> Any:
        """What the model returns for a batch: one row per graph, or a dict or tuple with these."""
        values = ((parameter, getattr(batch, name)) for parameter, name in self.bound)
        given = {parameter: _as_weights(value, parameter, torch.float32) for parameter, value in values}
        answer = model(batch) if self.takes_data else model(**given)
        shape = list(getattr(unwrapped(answer), "shape", ()))
        if not shape or shape[0] != batch.num_graphs:
            raise InputError(self._refusal(shape, batch))
        return answer

    def tried(self, model: Callable[..., Any], batch: Batch) -> Any:
        """Like a call, but whatever goes wrong is one line."""
        try:
            return self(model, batch)
        except InputError:
            raise
        except Exception as error:
            given = "data" if self.takes_data else ", ".join(parameter for parameter, _ in self.bound)
            lacks = "" if batch.x is not None else " The graphs have no x."
            raise InputError(f"model: it cannot be called as model({given}): {first_line(error)}{lacks}") from error

    def _refusal(self, shape: list[int], batch: Batch) -> str:
        if shape and shape[0] == batch.num_nodes:
            reason = "which is one row per node. Pool the nodes of a graph, as with global_mean_pool(x, batch)"
        elif not self.takes_data and "batch" not in (name for _, name in self.bound):
            reason = "and has no argument batch, so graphs are not kept apart. Add it, and global_mean_pool(x, batch)"
        else:
            reason = "not with one row per graph. Pool the nodes of each graph, as with global_mean_pool(x, batch)"
        return f"model: it answered {batch.num_graphs} graphs with shape {shape}, {reason}."


def bind_graph_call(model: Any, batch: Batch) -> GraphCall:
    """How a classifier of graphs is called, from its signature and what the graphs have; or what is missing is refused.

    A parameter that is alone, or the only one without a default and not called like a field, gets the whole batch, as
    ``data`` does. Else each parameter gets what it is called: ``x``, ``edge_index``, ``batch``, ``edge_attr``, ``pos``
    or any other field of the graphs but ``y``; a first and a second one of another name get ``x`` and ``edge_index``.
    Others keep their defaults.

    Example:
        >>> from torch_geometric.data import Data
        >>> batch = Batch.from_data_list([Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))])
        >>> bind_graph_call(lambda h, edges, batch: h, batch).bound
        (('h', 'x'), ('edges', 'edge_index'), ('batch', 'batch'))
    """
    parameters = [one for one in _parameters_of(model) if one.kind in (*_PLACED, inspect.Parameter.KEYWORD_ONLY)]
    needed = [one for one in parameters if one.default is inspect.Parameter.empty]
    hidden = ("y", "batch", "ptr")
    fields = [name for name in sorted(batch.keys()) if name not in hidden and batch[name] is not None]
    if len(parameters) < 2 or (needed == parameters[:1] and needed[0].name not in fields):
        return GraphCall(takes_data=True)
    bound: dict[str, str] = {}
    for place, one in enumerate(parameters):
        name = _field(one.name, model, fields, batch)
        if name is None and place < len(_IN_PLACE) and one in needed and one.name not in _KNOWN:
            name = _IN_PLACE[place] if _IN_PLACE[place] in fields else None
        if name is not None:
            bound[one.name] = name
        elif one in needed:
            raise InputError(_missing(one.name, fields))
    return GraphCall(bound=tuple(bound.items()))


def check_apart(ask: Callable[[Batch], Any], together: Any, few: Batch) -> None:
    """Refuse a model whose answer about a graph depends on the other graphs of the batch, or on chance.

    Its answer about a larger batch is ``together``; that batch begins with the few graphs.
    """
    alone, again = (torch.as_tensor(unwrapped(ask(few))).detach() for _ in range(2))
    beside = torch.as_tensor(unwrapped(together)).detach()[: few.num_graphs]
    limit = tolerance("steady") * float(alone.abs().max())
    if float((alone - again).abs().max()) > limit:
        raise InputError(TWO_ANSWERS)
    if float((alone - beside).abs().max()) > limit:
        raise InputError(
            "model: its answer about a graph depends on the other graphs of the batch. Keep graphs apart, as with "
            "global_mean_pool(x, batch) and GraphNorm()(x, batch)."
        )


def _field(parameter: str, model: Any, fields: list[str], batch: Batch) -> str | None:
    """What a parameter gets of a batch, by its name; None if the batch has nothing for it."""
    if parameter in _FIELDS:
        return _FIELDS[parameter]
    if parameter not in EDGE_NAMES:
        return parameter if parameter in fields else None
    axes = {name: batch[name].ndim for name in EDGE_VALUES if name in fields}
    return None if _declines(model, EDGE_NAMES[parameter]) else _value_for(parameter, axes)


def _missing(parameter: str, fields: list[str]) -> str:
    has = f"They have {', '.join(fields)}." if fields else "They have no fields."
    advice = "Give it a default, or let the model take the one argument data."
    if parameter == "x":
        advice = "Give nodes features, as with torch_geometric.transforms.OneHotDegree or Constant."
    return f"model: it needs the argument {parameter}, which the graphs do not have. {has} {advice}"
