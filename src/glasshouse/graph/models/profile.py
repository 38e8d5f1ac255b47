"""What is known about a model on a graph: how it wants to be asked, how far it sees, and what its answers are.

The one place where any model is asked; its answers leave as logits. A door makes `Profiled` models and hands them on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from glasshouse.core.arrays import FloatArray, TextArray
from glasshouse.core.errors import InputError, first_line
from glasshouse.core.numerics import check_finite, finite_logits
from glasshouse.core.outputs import (
    SHARES_NOTE,
    array_of,
    check_not_counts,
    looks_like_probabilities,
)
from glasshouse.graph.layers.layer_type import counted_layers
from glasshouse.graph.models.calls import (
    Arguments,
    HeldValues,
    answer_of,
    bind_arguments,
    edge_values,
    held_values,
    try_call,
    with_edges,
)
from glasshouse.graph.models.networks import GNN, Model, model_device
from glasshouse.graph.models.tensor_cache import remembered
from glasshouse.graph.programs.program import NoProgram, Program
from glasshouse.graph.programs.reach import Reach, checked_program, reach_of, reach_on_graph
from glasshouse.graph.programs.trace import Asked, traced
from glasshouse.query.vote_step import ShareFinder
from glasshouse.training.batches import say_once
from glasshouse.training.inputs import in_evaluation

UNKNOWN_HOPS = 2  # for a callable that states nothing and was not measured
_PLAIN = Arguments()  # x and edge_index
BothWays = Callable[[], bool]  # whether the edges of a graph all go both ways; found once, when it matters


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """How a model wants to be asked, and what its answers are."""

    hops: int = UNKNOWN_HOPS  # L, how many steps along the edges a change can travel to an answer
    # whether an answer depends on the whole graph; the model is then asked on whole graphs only
    everywhere: bool = False
    # whether all edges of the graph go both ways, if that decides how a model is asked: one that uses out-degrees is
    # asked about whole graphs if they do not. None for all other models
    both_ways: bool | None = None
    # what it is called with: one `Data`, or ``x``, ``edge_index`` and values of the edges
    arguments: Arguments = _PLAIN
    probabilities: bool = False  # whether it gives probabilities instead of logits
    shares: bool = False  # whether it gives numbers between 0 and 1 that are no probabilities of all classes
    program: Program | None = None  # what it does, as calls that engines can take apart; None for a black box
    obstacle: str = ""  # why there is no program, in one line
    # whether ``hops`` and ``everywhere`` were measured; not if all queries are about whole graphs
    measured: bool = True
    notes: tuple[str, ...] = ()  # what a reader of the report should know about this


def _notes(profile: ModelProfile, stated: int | None) -> tuple[str, ...]:
    """What a reader of the report should know about how a model is asked, whose attribute ``hops`` is ``stated``."""
    notes = []
    if profile.everywhere:
        cause = (
            "edges that lead away from it or its neighbours (as with out-degrees), and the edges of the graph do not "
            "all go both ways"
            if profile.both_ways is False
            else "the whole graph (as with GraphNorm, a virtual node or the number of nodes)"
        )
        notes.append(
            f"The model's answers about a node depend on {cause}, so every toggle asks it about a whole graph, and the "
            f"sum of eq. (6) runs over all members."
        )
    elif profile.obstacle:
        notes.append(
            f"The model is asked as a black box, which is exact but slow: {profile.obstacle}. A module of layers and "
            f"operations on single nodes would be taken apart."
        )
    if not profile.everywhere and stated is not None and stated < profile.hops:
        notes.append(
            f"The model says hops = {stated}, but its answers change up to {profile.hops} steps away; "
            f"{profile.hops} is used."
        )
    if profile.probabilities:
        notes.append(
            "The model answers with probabilities (rows are not negative and sum to 1); they are used as such, not "
            "as logits."
        )
    if profile.shares:
        notes.append(SHARES_NOTE)
    notes += [f"The graph has {name}, which the model does not use." for name in profile.arguments.unused]
    notes += [
        f"The model is given the graph's {name} as its argument {parameter}."
        for parameter, name in profile.arguments.bound
    ]
    return tuple(notes)


def measured_reach(
    ask: Callable[[Data], Tensor], data: Data, *, both_ways: bool, expected: int, on_graph: bool
) -> Reach:
    """The reach of a model on made-up graphs of the graph's own rows; with ``on_graph``, on the graph itself too.

    If its answers depend on edges that lead away from a node or its senders, as through out-degrees, and not all edges
    go both ways, it counts as a model that looks at the whole graph. A first guess of the reach is ``expected``.
    """
    values = edge_values(data)

    def along(x: Tensor, edges: Tensor, values: dict[str, Tensor]) -> Tensor:
        return ask(Data(x=x, edge_index=edges, **values))

    reach = reach_of(along, data.x, values, both_ways=both_ways, expected=expected)
    if reach.leaving and not both_ways:
        return replace(reach, everywhere=True)
    if not on_graph or reach.everywhere:
        return reach
    source, end = data.edge_index.long()

    def within(x: Tensor, edges: Tensor) -> Tensor:  # the probe takes out all edges of a pair, or none
        kept = torch.isin(source * len(x) + end, edges[0].long() * len(x) + edges[1])
        return along(x, edges, {name: value[kept] for name, value in values.items()})

    found = reach_on_graph(within, data.x, data.edge_index, hops=reach.hops)
    return replace(reach, hops=found.hops, everywhere=found.everywhere)


@dataclass(frozen=True, eq=False)
class Profiled:
    """A model with its profile; what the rooms behind a door are given, so that no model is tried again.

    Example:
        >>> alone = Data(x=torch.eye(2), edge_index=torch.empty(2, 0))
        >>> Profiled(lambda x, edge_index: {"logits": x}, ModelProfile()).logits(alone).shape
        torch.Size([2, 2])
    """

    model: Model  # the user's own module or callable
    profile: ModelProfile  # how it wants to be asked on a graph (`profile_models`)

    @cached_property
    def root(self) -> Asked:
        """The module that its program was traced from; its layers and weights are the model's own."""
        arguments = self.profile.arguments
        return Asked(cast("nn.Module", self.model), takes_data=arguments.takes_data, keywords=dict(arguments.bound))

    def logits(self, data: Data) -> Tensor:
        """Logits [n, classes] about all nodes of a graph, from its features, its edges and the values of its edges."""
        arguments, held = self.profile.arguments, held_values(data)
        if arguments.held != held:
            given = Arguments(takes_data=True, held=held)
            arguments = given if arguments.takes_data else bind_arguments(self.model, held)
        answer = answer_of(self.model, data, arguments)
        if not self.profile.probabilities:
            return answer
        return answer.clamp(min=torch.finfo(answer.dtype).eps).log()  # an exact 0 counts as the epsilon of its type

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what is quick to make again."""
        return Profiled, (self.model, self.profile)

    def _fits(self, held: HeldValues, ways: BothWays, *, measured: bool) -> bool:
        """Whether it was profiled on a graph whose edges have such values, and go both ways if that matters."""
        profile = self.profile
        if profile.arguments.held != held or (measured and not profile.measured):
            return False
        return profile.both_ways is None or profile.both_ways == ways()


AnyModel = Model | Profiled  # what a door takes


def raw_models(models: Sequence[AnyModel]) -> list[Model]:
    """The users' own models."""
    return [one.model if isinstance(one, Profiled) else one for one in models]


def profile_models(
    models: Sequence[AnyModel],
    data: Data,
    *,
    parts: bool = True,  # whether models will be asked about parts of the graph; if not, their reach does not matter
    labels: Tensor | None = None,  # [n] which show how many classes there are; ``data.y`` by default, if there is one
) -> list[Profiled]:
    """Take every model apart, or measure it; those whose profile is of such a graph already are returned as they are.

    Models of one shape get one reach, the largest, so that target and shadow models are asked in the same way.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> data = Data(x=torch.randn(5, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> (model,) = profile_models([GCN(3, 4, num_layers=3, out_channels=2)], data)
        >>> model.profile.hops
        3
    """
    held, ways = held_values(data), _both_ways(data)
    answer = {at: one for at, one in enumerate(models) if isinstance(one, Profiled)}
    usable, known = (
        {at for at, one in answer.items() if one._fits(held, ways, measured=measured)} for measured in (False, parts)
    )
    groups: dict[object, list[int]] = {}
    raw = raw_models(models)
    for at in range(len(models)):
        if at not in known:
            groups.setdefault(_shape(raw[at]), []).append(at)
    for places in groups.values():
        tried = [answer[at].profile if at in usable else None for at in places]
        profiles = _profiles([raw[at] for at in places], tried, data, ways, parts=parts, labels=labels)
        answer.update({at: Profiled(raw[at], one) for at, one in zip(places, profiles, strict=True)})
    return [answer[at] for at in range(len(models))]


def _profiles(
    models: Sequence[Model],
    tried: Sequence[ModelProfile | None],
    data: Data,
    ways: BothWays,
    *,
    parts: bool,
    labels: Tensor | None,
) -> list[ModelProfile]:
    """The profiles of models of one shape; of some of them it may be known how they are called."""
    known = data.y if labels is None else labels
    classes = int(known.max()) + 1 if isinstance(known, Tensor) and len(known) else None
    graph = with_edges(data, device=model_device(models))
    with evaluation_mode(models):
        found = [one or _tried(model, graph, classes) for model, one in zip(models, tried, strict=True)]
        if parts:
            refuse_caches(models)
            found = _taken_apart(models, found, graph, ways)
            found = [
                one if one.measured else _measured(model, one, graph, ways, first=model is models[0])
                for model, one in zip(models, found, strict=True)
            ]
    for obstacle in dict.fromkeys(one.obstacle for one in found if one.obstacle):
        say_once(
            f"The model {getattr(models[0], '__name__', type(models[0]).__name__)} is asked as a black box: {obstacle}."
        )
    hops, everywhere = max(one.hops for one in found), any(one.everywhere for one in found)
    matters = next((one.both_ways for one in found if one.both_ways is not None), None)
    found = [replace(one, hops=hops, everywhere=everywhere, both_ways=matters) for one in found]
    return [replace(one, notes=_notes(one, _stated(model))) for model, one in zip(models, found, strict=True)]


def refuse_caches(models: Sequence[Model]) -> None:
    """Refuse layers that keep the first edges that they saw, since models are asked with other edges."""
    for model in models:
        for name, layer in model.named_modules() if isinstance(model, nn.Module) else ():
            if getattr(layer, "cached", False) is True:
                raise InputError(
                    f"model: {name or 'it'} is a {type(layer).__name__} with cached=True, which answers every query "
                    f'with the edges that it saw first. Set cached=False; or pass setting="transductive" if the model '
                    f"was trained on the whole graph."
                )


def ask_model(model: AnyModel, data: Data) -> Tensor:
    """Logits [n, classes] of any model about all nodes of a graph; one without a profile is called by its signature.

    It is given features, edges and the values of the edges, and nothing else, such as labels.
    """
    if isinstance(model, Profiled):
        return model.logits(data)
    return answer_of(model, data, bind_arguments(model, held_values(data)))


@contextlib.contextmanager
def evaluation_mode(models: Sequence[AnyModel]) -> Iterator[None]:
    """No gradients, and no dropout: modules are put in evaluation mode and back afterwards."""
    with in_evaluation(model for model in raw_models(models) if isinstance(model, nn.Module)), torch.no_grad():
        yield


def _both_ways(data: Data) -> BothWays:
    edges, nodes = data.edge_index, len(data.x)

    def find() -> bool:
        return not edges.numel() or bool(is_undirected(edges, num_nodes=nodes))

    return cache(lambda: remembered(edges, ("both ways", nodes), find))


def _taken_apart(
    models: Sequence[Model], found: Sequence[ModelProfile], data: Data, ways: BothWays
) -> list[ModelProfile]:
    """The profile of models of one shape with their programs, or with the reason why there is none.

    The first program is tried on a part of the graph; the others need only do the same calls.
    """
    known: dict[tuple[object, ...], Program] = {}
    answers = []
    for model, profile in zip(models, found, strict=True):
        try:
            program = _program(model, profile, data, known)
        except NoProgram as reason:
            answers.append(replace(profile, obstacle=str(reason)))
            continue
        profile = replace(profile, hops=max(program.hops, _stated(model) or 0), measured=True)
        if program.both_ways:
            profile = replace(profile, both_ways=ways(), everywhere=not ways())
        answers.append(profile if profile.everywhere else replace(profile, program=program))
    if any(one.program is None for one in answers):  # models of one shape are asked in one way
        why = next(one.obstacle for one in answers if one.program is None)
        answers = [replace(one, program=None, obstacle=why, measured=one.everywhere) for one in answers]
    return answers


def _program(model: Model, profile: ModelProfile, data: Data, known: dict[tuple[object, ...], Program]) -> Program:
    if not isinstance(model, nn.Module):
        raise NoProgram("it is not a torch module")
    root = Profiled(model, profile).root
    program = traced(root)
    if program.signature not in known:
        known[program.signature] = checked_program(program, root, data)
    return known[program.signature]


def _measured(model: Model, profile: ModelProfile, data: Data, ways: BothWays, *, first: bool) -> ModelProfile:
    """The profile with the reach; the first model of a group is also asked about the graph itself."""

    def ask(graph: Data) -> Tensor:
        try:
            return answer_of(model, graph, profile.arguments)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"model: it cannot be asked about a part of the graph ({first_line(error)}). Pass "
                f'setting="transductive" if it was trained on this graph and knows no other.'
            ) from error

    reach = measured_reach(ask, data, both_ways=ways(), expected=_expected(model), on_graph=first)
    hops, both_ways = max(reach.hops, _stated(model) or 0), ways() if reach.leaving else None
    return replace(profile, hops=hops, everywhere=reach.everywhere, both_ways=both_ways, measured=True)


def _tried(model: Model, data: Data, classes: int | None) -> ModelProfile:
    """Whether the model takes x and edges or a `Data`, and what its answers are.

    Percentages are refused, and so are rounded probabilities and those of some classes alone: a toggle changes losses
    by less than what they lack.
    """
    if type(model) is GNN:  # ours: it takes x and edges, and gives logits
        return ModelProfile(hops=_expected(model), arguments=bind_arguments(model, held_values(data)), measured=False)
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
    return ModelProfile(
        hops=_expected(model), arguments=arguments, probabilities=probabilities, shares=shares, measured=False
    )


def _stated(model: Model) -> int | None:
    """A model's attribute ``hops``: a user may know about paths that a trace or the trained weights do not show."""
    attribute = getattr(model, "hops", None)
    return attribute if isinstance(attribute, int) else None


def _expected(model: Model) -> int:
    """The reach that a model states, else its message-passing layers; 0 if it has neither."""
    stated, counted = _stated(model), counted_layers(model) if isinstance(model, nn.Module) else 0
    return counted if stated is None else stated


def _shape(model: Model) -> object:
    """What must be equal for two black boxes to be of one kind."""
    if isinstance(model, nn.Module):
        return type(model), tuple((name, tuple(value.shape)) for name, value in model.state_dict().items())
    return type(model), getattr(model, "__qualname__", None)


def node_logits(
    models: Sequence[AnyModel],
    data: Data,
    edges: Tensor | None = None,  # which of its edges the models are given, bool [E] or positions; all by default
    *,
    ids: TextArray | None = None,  # [n] names of the nodes, for a refusal; their numbers by default
) -> Iterator[FloatArray]:
    """Logits of one model after another, float64 [n, C], finite; a model with too few classes is refused."""
    labels = data.y.cpu().numpy().astype(np.int64)
    names, last = np.arange(len(labels)).astype(str) if ids is None else ids, int(labels.max())
    for model in models:
        device = model_device(raw_models([model])) or data.x.device
        with evaluation_mode([model]):
            logits: FloatArray = ask_model(model, with_edges(data, edges, device=device)).double().cpu().numpy()
        if logits.ndim != 2 or logits.shape[1] <= last:
            raise InputError(f"models: one answers with shape {logits.shape}, but the labels go up to {last}.")
        check_finite(logits, names, place="model", labels=labels)
        yield finite_logits(logits)
