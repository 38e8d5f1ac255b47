"""How a classifier of whole graphs is called: with what its arguments are named, for a batch of graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from glasshouse.core.errors import InputError, first_line
from glasshouse.core.outputs import unwrapped
from glasshouse.graph.models.calls import EDGE_NAMES, PLACED, as_weights, declines, parameters_of, value_for
from glasshouse.graph.models.edge_values import EDGE_VALUES
from glasshouse.graph.programs.program import tolerance
from glasshouse.graph.programs.reach import TWO_ANSWERS

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
        given = {parameter: _value(batch, name, parameter) for parameter, name in self.bound}
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
    parameters = [one for one in parameters_of(model) if one.kind in (*PLACED, inspect.Parameter.KEYWORD_ONLY)]
    needed = [one for one in parameters if one.default is inspect.Parameter.empty]
    fields = _fields(batch)
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


def _fields(batch: Batch) -> list[str]:
    hidden = ("y", "batch", "ptr")
    return [name for name in sorted(batch.keys()) if name not in hidden and batch[name] is not None]


def _field(parameter: str, model: Any, fields: list[str], batch: Batch) -> str | None:
    """What a parameter gets of a batch, by its name; None if the batch has nothing for it."""
    if parameter in _FIELDS:
        return _FIELDS[parameter]
    if parameter not in EDGE_NAMES:
        return parameter if parameter in fields else None
    axes = {name: batch[name].ndim for name in EDGE_VALUES if name in fields}
    return None if declines(model, EDGE_NAMES[parameter]) else value_for(parameter, axes)


def _value(batch: Batch, name: str, parameter: str) -> Any:
    value = getattr(batch, name)
    return as_weights(value, parameter, torch.float32) if isinstance(value, Tensor) else value


def _missing(parameter: str, fields: list[str]) -> str:
    has = f"They have {', '.join(fields)}." if fields else "They have no fields."
    advice = "Give it a default, or let the model take the one argument data."
    if parameter == "x":
        advice = "Give nodes features, as with torch_geometric.transforms.OneHotDegree or Constant."
    return f"model: it needs the argument {parameter}, which the graphs do not have. {has} {advice}"
