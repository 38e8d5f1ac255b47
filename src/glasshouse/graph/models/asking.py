"""The one door to a model on a graph: how each model wants to be asked, and its answers as logits."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from glasshouse.errors import InputError, first_line
from glasshouse.graph.models.arguments import Arguments, bind_arguments
from glasshouse.graph.models.calling import answer_of, try_call
from glasshouse.graph.models.edge_values import HeldValues, held_values, with_edges
from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.models.layer_types import counted_step
from glasshouse.graph.models.manners import UNKNOWN_HOPS, Manners, notes_on
from glasshouse.graph.models.measuring import measured_reach
from glasshouse.graph.models.model import Model, model_device
from glasshouse.graph.models.tensor_memory import remembered
from glasshouse.graph.programs.checking import checked_program
from glasshouse.graph.programs.program import NoProgram, Program
from glasshouse.graph.programs.reach import counted_layers
from glasshouse.graph.programs.tracing import Asked, traced
from glasshouse.model_outputs import array_of, check_not_counts, looks_like_probabilities
from glasshouse.resolution import ShareFinder
from glasshouse.training.batching import say_once

__all__ = ["Manners", "ask_model", "asked", "manners_of", "meet", "quiet", "refuse_caches"]

# by identity, since a callable need not be hashable; an entry goes when its model goes
_KNOWN: dict[int, tuple[Callable[[], Any], Manners]] = {}


def manners_of(model: Model) -> Manners:
    """What is known about a model; if it was not measured (`meet`), what it states itself."""
    place, manners = _KNOWN.get(id(model), (None, None))
    if manners is not None and place is not None and place() is model:
        return manners
    return Manners(hops=_stated(model) or UNKNOWN_HOPS, measured=False)


def meet(models: Sequence[Model], data: Data, *, parts: bool = True, labels: Tensor | None = None) -> None:
    """Take every model apart that was not met before, or measure it; afterwards `manners_of` knows it.

    Models of one shape get one reach, the largest, so that target and shadow models are asked in the same way.

    Args:
        models: the target and its shadow models.
        data: the graph: ``x`` [n, features], ``edge_index`` [2, edges], and values of edges if it has any.
        parts: whether models will be asked about parts of the graph; if not, their reach does not matter.
        labels: [n] which show how many classes there are; ``data.y`` by default, if there is one.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> model = GCN(3, 4, num_layers=3, out_channels=2)
        >>> meet([model], Data(x=torch.randn(5, 3), edge_index=torch.tensor([[0, 1], [1, 0]])))
        >>> manners_of(model).hops
        3
    """
    held, edges = held_values(data), _Edges(data)
    groups: dict[object, list[Model]] = {}
    for model in models:
        if not _is_known(model, held, measured=parts, edges=edges):
            groups.setdefault(_shape(model), []).append(model)
    if not groups:
        return
    known = data.y if labels is None else labels
    classes = int(known.max()) + 1 if isinstance(known, Tensor) and len(known) else None
    for group in groups.values():
        graph = with_edges(data, device=model_device(group))
        with quiet(group):
            found = [_tried(model, graph, classes) for model in group]
            if parts:
                refuse_caches(group)
                found = _taken_apart(group, found, graph, edges)
                found = [
                    one if one.measured else _measured(model, one, graph, edges, first=model is group[0])
                    for model, one in zip(group, found, strict=True)
                ]
        for obstacle in dict.fromkeys(one.obstacle for one in found if one.obstacle):
            say_once(f"The model {_kind_name(group[0])} is asked as a black box: {obstacle}.")
        hops, everywhere = max(one.hops for one in found), any(one.everywhere for one in found)
        ways = next((one.both_ways for one in found if one.both_ways is not None), None)
        for model, manners in zip(group, found, strict=True):
            manners = replace(manners, hops=hops, everywhere=everywhere, both_ways=ways)
            _remember(model, replace(manners, notes=notes_on(manners, stated=getattr(model, "hops", None))))


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


class _Edges:
    """Whether the edges of a graph all go both ways; found once, when it matters."""

    def __init__(self, data: Data) -> None:
        self.data = data

    @cached_property
    def both_ways(self) -> bool:
        edges, nodes = self.data.edge_index, len(self.data.x)
        if not edges.numel():
            return True
        return remembered(edges, ("both ways", nodes), lambda: bool(is_undirected(edges, num_nodes=nodes)))


def _taken_apart(models: Sequence[Model], found: Sequence[Manners], data: Data, edges: _Edges) -> list[Manners]:
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
        if not program.both_ways:
            answers.append(replace(manners, hops=hops, program=program, measured=True))
        elif edges.both_ways:
            answers.append(replace(manners, hops=hops, program=program, both_ways=True, measured=True))
        else:
            answers.append(replace(manners, hops=hops, everywhere=True, both_ways=False, measured=True))
    if any(one.program is None for one in answers):  # models of one shape are asked in one way
        why = next(one.obstacle for one in answers if one.program is None)
        answers = [replace(one, program=None, obstacle=why, measured=one.everywhere) for one in answers]
    return answers


def _program(model: Model, manners: Manners, data: Data, known: dict[tuple[object, ...], Program]) -> Program:
    if not isinstance(model, nn.Module):
        raise NoProgram("it is not a torch module")
    arguments = manners.arguments
    keywords = dict(arguments.bound)
    signature = traced(model, takes_data=arguments.takes_data, keywords=keywords).signature
    if signature not in known:
        known[signature] = checked_program(
            model, data, takes_data=arguments.takes_data, keywords=keywords, counted=counted_step
        )
    return known[signature]


def _kind_name(model: Model) -> str:
    return str(getattr(model, "__name__", type(model).__name__))


def _stated_attribute(model: Model) -> int:
    """A user may know about paths that a trace or the trained weights do not show."""
    attribute = getattr(model, "hops", 0)
    return attribute if isinstance(attribute, int) else 0


def _measured(model: Model, manners: Manners, data: Data, ways: _Edges, *, first: bool) -> Manners:
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

    reach, leaving = measured_reach(ask, data, both_ways=ways.both_ways, expected=_stated(model), on_graph=first)
    hops, both_ways = max(reach.hops, _stated_attribute(model)), ways.both_ways if leaving else None
    return replace(manners, hops=hops, everywhere=reach.everywhere, both_ways=both_ways, measured=True)


def _tried(model: Model, data: Data, classes: int | None) -> Manners:
    """Whether the model takes x and edges or a `Data`, and what its answers are.

    Percentages are refused, and so are rounded probabilities and those of some classes alone: a toggle changes losses
    by less than what they lack.
    """
    if type(model) is GNN:  # ours: it takes x and edges, and gives logits
        return Manners(hops=_stated(model), arguments=bind_arguments(model, held_values(data)), measured=False)
    arguments, answer = try_call(model, data, classes=classes)
    probabilities = looks_like_probabilities(answer)
    if not probabilities:
        check_not_counts(array_of(answer))
        finder = ShareFinder()
        finder.add(array_of(answer))
        if (found := finder.found()) is not None:
            kind = (
                "rounded probabilities" if found.kind == "rounded" else "probabilities of its likeliest classes alone"
            )
            raise InputError(
                f"model: it answers with {kind}, and a node changes the answers about its neighbours by less than that "
                f"hides. Answer with the probabilities of all classes, with all their digits, or with logits."
            )
    shares = not probabilities and 0 <= float(answer.min()) < float(answer.max()) <= 1
    return Manners(hops=_stated(model), arguments=arguments, probabilities=probabilities, shares=shares, measured=False)


def _log(probabilities: Tensor) -> Tensor:
    """Logits from probabilities; an exact 0 is taken as the machine epsilon of its type."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).eps).log()


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


def _is_known(model: Model, held: HeldValues, *, measured: bool, edges: _Edges | None = None) -> bool:
    """Whether a model was met on a graph whose edges have such values, and go both ways if that matters."""
    place, manners = _KNOWN.get(id(model), (None, None))
    if place is None or manners is None or place() is not model or manners.arguments.held != held:
        return False
    if edges is not None and manners.both_ways is not None and manners.both_ways != edges.both_ways:
        return False
    return manners.measured or not measured


def _remember(model: Model, manners: Manners) -> None:
    number = id(model)
    place: Callable[[], Any] = lambda: model  # noqa: E731 (an object that cannot be referred to weakly is kept)
    with contextlib.suppress(TypeError):
        place = weakref.ref(model, functools.partial(_forget, _KNOWN, number))
    _KNOWN[number] = (place, manners)


def _forget(known: dict[int, Any], number: int, _: object) -> None:
    """Called when a model goes; it is handed the table, since names of a module may go before the models do."""
    known.pop(number, None)
