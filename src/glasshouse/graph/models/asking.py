"""The one door to a model on a graph: how each model wants to be asked, and its answers as logits."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from glasshouse.errors import InputError
from glasshouse.graph.models.arguments import Arguments, bind_arguments
from glasshouse.graph.models.calling import answer_of, first_line, try_call
from glasshouse.graph.models.edge_values import HeldValues, held_values, with_edges
from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.models.layer_types import LAYER_TYPES
from glasshouse.graph.models.measuring import measured_reach
from glasshouse.graph.models.model import Model, model_device
from glasshouse.graph.programs.checking import checked_program
from glasshouse.graph.programs.program import NoProgram, Program
from glasshouse.graph.programs.reach import counted_layers
from glasshouse.graph.programs.tracing import Asked, traced
from glasshouse.model_outputs import looks_like_probabilities

__all__ = ["Manners", "ask_model", "asked", "manners_of", "meet", "quiet", "refuse_caches"]

_UNKNOWN_HOPS = 2  # for a callable that states nothing and was not measured
_PLAIN = Arguments()  # x and edge_index


@dataclass(frozen=True, kw_only=True)
class Manners:
    """How a model wants to be asked, and what its answers are.

    Args:
        hops: L, how many steps along the edges a change can travel to an answer.
        everywhere: whether an answer depends on the whole graph; the model is then asked on whole graphs only.
        arguments: what it is called with: one `Data`, or ``x``, ``edge_index`` and values of the edges.
        probabilities: whether it gives probabilities instead of logits.
        program: what it does, as calls that engines can take apart; None for a black box.
        obstacle: why there is no program, in one line.
        measured: whether ``hops`` and ``everywhere`` were measured; not if all queries are about whole graphs.
        notes: what a reader of the report should know about this.

    Example:
        >>> manners_of(lambda x, edge_index: x).hops  # a callable that was not measured
        2
    """

    hops: int = _UNKNOWN_HOPS
    everywhere: bool = False
    arguments: Arguments = _PLAIN
    probabilities: bool = False
    program: Program | None = None
    obstacle: str = ""
    measured: bool = True
    notes: tuple[str, ...] = ()


# by identity, since a callable need not be hashable; an entry goes when its model goes
_KNOWN: dict[int, tuple[Callable[[], Any], Manners]] = {}


def manners_of(model: Model) -> Manners:
    """What is known about a model; if it was not measured (`meet`), what it states itself."""
    place, manners = _KNOWN.get(id(model), (None, None))
    if manners is not None and place is not None and place() is model:
        return manners
    return Manners(hops=_stated(model) or _UNKNOWN_HOPS, measured=False)


def meet(models: Sequence[Model], data: Data, *, parts: bool = True) -> None:
    """Take every model apart that was not met before, or measure it; afterwards `manners_of` knows it.

    Models of one shape get one reach, the largest, so that target and shadow models are asked in the same way.

    Args:
        models: the target and its shadow models.
        data: the graph: ``x`` [n, features], ``edge_index`` [2, edges], and values of edges if it has any.
        parts: whether models will be asked about parts of the graph; if not, their reach does not matter.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> model = GCN(3, 4, num_layers=3, out_channels=2)
        >>> meet([model], Data(x=torch.randn(5, 3), edge_index=torch.tensor([[0, 1], [1, 0]])))
        >>> manners_of(model).hops
        3
    """
    held = held_values(data)
    groups: dict[object, list[Model]] = {}
    for model in models:
        if not _is_known(model, held, measured=parts):
            groups.setdefault(_shape(model), []).append(model)
    if not groups:
        return
    both_ways = is_undirected(data.edge_index, num_nodes=len(data.x)) if data.edge_index.numel() else True
    for group in groups.values():
        graph, device = with_edges(data), model_device(group)
        graph = graph if device is None else graph.to(device)
        with quiet(group):
            found = [_tried(model, graph) for model in group]
            if parts:
                refuse_caches(group)
                found = _taken_apart(group, found, graph)
                found = [
                    one if one.program else _measured(model, one, graph, both_ways=both_ways, first=model is group[0])
                    for model, one in zip(group, found, strict=True)
                ]
        hops, everywhere = max(one.hops for one in found), any(one.everywhere for one in found)
        for model, manners in zip(group, found, strict=True):
            _remember(model, _with_notes(model, replace(manners, hops=hops, everywhere=everywhere)))


def asked(model: Any) -> Asked:
    """The module that the model's program was traced from; its layers and weights are the model's own.

    Example:
        >>> type(asked(nn.Linear(2, 2))).__name__
        'Asked'
    """
    arguments = manners_of(model).arguments
    return Asked(model, takes_data=arguments.takes_data, keywords=dict(arguments.bound))


def refuse_caches(models: Sequence[Model]) -> None:
    """Refuse layers that keep the first edges that they saw, since models are asked with other edges.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> refuse_caches([GCNConv(2, 2, cached=True)])
        Traceback (most recent call last):
        glasshouse.errors.InputError: model: it is a GCNConv with cached=True, which answers every query with the ...
    """
    for model in models:
        for name, layer in model.named_modules() if isinstance(model, nn.Module) else ():
            if getattr(layer, "cached", False) is True:
                raise InputError(
                    f"model: {name or 'it'} is a {type(layer).__name__} with cached=True, which answers every query "
                    f'with the edges that it saw first. Set cached=False; or pass setting="transductive" if the model '
                    f"was trained on the whole graph."
                )


def ask_model(model: Model, data: Data) -> Tensor:
    """Logits [n, classes] of any model about all nodes of a graph, asked as its manners describe.

    Args:
        model: to ask.
        data: ``x`` [n, features], ``edge_index`` [2, edges], and the values of these edges if they have any. A model
            is not given anything else, such as labels.

    Example:
        >>> alone = Data(x=torch.eye(2), edge_index=torch.empty(2, 0))
        >>> ask_model(lambda x, edge_index: {"logits": x}, alone).shape
        torch.Size([2, 2])
    """
    manners, held = manners_of(model), held_values(data)
    if _is_known(model, held, measured=False):
        arguments = manners.arguments
    elif manners.arguments.takes_data:
        arguments = Arguments(takes_data=True, held=held)
    else:
        arguments = bind_arguments(model, held)
    answer = answer_of(model, data, arguments)
    return _log(answer) if manners.probabilities else answer


@contextlib.contextmanager
def quiet(models: Sequence[Model]) -> Iterator[None]:
    """No gradients, and no dropout: modules are put in evaluation mode and back afterwards."""
    training = [model for model in models if isinstance(model, nn.Module) and model.training]
    for model in training:
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for model in training:
            model.train()


def _taken_apart(models: Sequence[Model], found: Sequence[Manners], data: Data) -> list[Manners]:
    """The manners of models of one shape with their programs, or with the reason why there is none.

    The first program is tried on a part of the graph; the others need only do the same calls.
    """
    known: dict[tuple[object, ...], Program] = {}
    answers = []
    for model, manners in zip(models, found, strict=True):
        try:
            program = _program(model, manners, data, known)
        except NoProgram as reason:
            answers.append(replace(manners, obstacle=str(reason)))
            continue
        hops = max(program.hops, _stated_attribute(model))
        answers.append(replace(manners, hops=hops, program=program, measured=True))
    if any(one.program is None for one in answers):  # models of one shape are asked in one way
        why = next(one.obstacle for one in answers if one.program is None)
        answers = [replace(one, program=None, obstacle=why, measured=False) for one in answers]
    return answers


def _program(model: Model, manners: Manners, data: Data, known: dict[tuple[object, ...], Program]) -> Program:
    if not isinstance(model, nn.Module):
        raise NoProgram("it is not a torch module")
    arguments = manners.arguments
    keywords = dict(arguments.bound)
    signature = traced(model, takes_data=arguments.takes_data, keywords=keywords).signature
    if signature not in known:
        known[signature] = checked_program(
            model, data, takes_data=arguments.takes_data, keywords=keywords, counted=LAYER_TYPES
        )
    return known[signature]


def _stated_attribute(model: Model) -> int:
    """A user may know about paths that a trace or the trained weights do not show."""
    attribute = getattr(model, "hops", 0)
    return attribute if isinstance(attribute, int) else 0


def _measured(model: Model, manners: Manners, data: Data, *, both_ways: bool, first: bool) -> Manners:
    """The manners with the reach; the first model of a group is also asked about the graph itself."""

    def ask(graph: Data) -> Tensor:
        try:
            return answer_of(model, graph, manners.arguments)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"model: it cannot be asked about a part of the graph ({first_line(error)}). Pass "
                f'setting="transductive" if it was trained on this graph and knows no other.'
            ) from error

    reach = measured_reach(ask, data, both_ways=both_ways, expected=_stated(model), on_graph=first)
    hops = max(reach.hops, _stated_attribute(model))
    return replace(manners, hops=hops, everywhere=reach.everywhere, measured=True)


def _tried(model: Model, data: Data) -> Manners:
    """Whether the model takes x and edges or a `Data`, and whether its answers are probabilities."""
    if type(model) is GNN:  # ours: it takes x and edges, and gives logits
        return Manners(hops=_stated(model), arguments=bind_arguments(model, held_values(data)), measured=False)
    arguments, answer = try_call(model, data)
    probabilities = looks_like_probabilities(answer)
    return Manners(hops=_stated(model), arguments=arguments, probabilities=probabilities, measured=False)


def _log(probabilities: Tensor) -> Tensor:
    """Logits from probabilities; an exact 0 is taken as the machine epsilon of its type."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).eps).log()


def _with_notes(model: Model, manners: Manners) -> Manners:
    notes = []
    if manners.everywhere:
        notes.append(
            "The model's answers about a node depend on the whole graph (as with GraphNorm, PairNorm or a virtual "
            "node), so every toggle asks it about a whole graph, and the sum of eq. (6) runs over all members."
        )
    elif manners.obstacle:
        notes.append(
            f"The model is asked as a black box, which is exact but slow: {manners.obstacle}. A module of layers and "
            f"operations on single nodes would be taken apart."
        )
    if not manners.everywhere and isinstance(stated := getattr(model, "hops", None), int) and stated < manners.hops:
        notes.append(
            f"The model says hops = {stated}, but its answers change up to {manners.hops} steps away; "
            f"{manners.hops} is used."
        )
    if manners.probabilities:
        notes.append(
            "The model answers with probabilities (rows are not negative and sum to 1); they are used as such, not "
            "as logits."
        )
    notes += [f"The graph has {name}, which the model does not use." for name in manners.arguments.unused]
    notes += [
        f"The model is given the graph's {name} as its argument {parameter}."
        for parameter, name in manners.arguments.bound
    ]
    return replace(manners, notes=tuple(notes))


def _stated(model: Model) -> int:
    """The reach that a model states: an attribute ``hops``, else its message-passing layers; 0 if it has neither."""
    attribute = getattr(model, "hops", None)
    if isinstance(attribute, int):
        return attribute
    return counted_layers(model) if isinstance(model, nn.Module) else 0


def _shape(model: Model) -> object:
    """What must be equal for two black boxes to be of one kind."""
    if isinstance(model, nn.Module):
        return type(model), tuple((name, tuple(value.shape)) for name, value in model.state_dict().items())
    return type(model), getattr(model, "__qualname__", None)


def _is_known(model: Model, held: HeldValues, *, measured: bool) -> bool:
    """Whether a model was met on a graph whose edges have such values."""
    place, manners = _KNOWN.get(id(model), (None, None))
    if place is None or manners is None or place() is not model or manners.arguments.held != held:
        return False
    return manners.measured or not measured


def _remember(model: Model, manners: Manners) -> None:
    number = id(model)
    place: Callable[[], Any] = lambda: model  # noqa: E731 (an object that cannot be referred to weakly is kept)
    with contextlib.suppress(TypeError):
        place = weakref.ref(model, lambda _: _KNOWN.pop(number, None))
    _KNOWN[number] = (place, manners)
