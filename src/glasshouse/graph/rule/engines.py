"""What an engine of the rule is: the registry, the predicted time of each, and a large question in blocks.

Only orders of magnitude of the time are known. The prediction depends neither on the machine nor on what is kept on its
disk, so that the same question always gets the same engine, and the same bytes.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import MaxAggregation

from glasshouse.compute import is_worth_spreading, spread
from glasshouse.core.arrays import FloatArray
from glasshouse.core.progress import open_bar
from glasshouse.graph.models.profile import Profiled, evaluation_mode
from glasshouse.graph.models.tensor_cache import once, open_memory, remembered
from glasshouse.graph.rule.question import Question, Toggles
from glasshouse.graph.rule.two_layers.graph import even_cuts

T = TypeVar("T")


class Stack(tuple[Profiled, ...]):
    """Models of one shape, and what engines made for them on a graph: made once, for every question about it."""

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returned the first time, by its name."""
        return once(vars(self).setdefault("known", {}), name, make)

    def __reduce__(self) -> tuple[Any, ...]:
        """What was made for them stays in its process."""
        return Stack, (tuple(self),)


class Engine(Protocol):
    """One way to compute ``toggle_losses`` for models that share a shape.

    One whose answers about a mask and a node are the same to the last bit whatever else is asked says ``apart = True``:
    its questions are cut into blocks only if there are workers to share them.
    """

    def supports(self, models: Stack, question: Question) -> bool:
        """Whether it can answer for these models, which all have the same shape."""

    def seconds(self, models: Stack, question: Question) -> float:
        """How long an audit that asks such questions would take with it; a function of the arguments alone."""

    def toggles(self, models: Stack, question: Question, *, memory: int) -> Toggles:
        """S and own losses, float64 [models, masks, nodes] each, within about ``memory`` bytes."""


E = TypeVar("E", bound=Engine)
_ENGINES: dict[str, tuple[int, Engine]] = {}


def register_engine(name: str, *, rank: int) -> Callable[[type[E]], type[E]]:
    """Class decorator: add an engine under a name; if two take equally long, the lower rank is taken.

    Example:
        >>> @register_engine("never", rank=99)
        ... class Never:
        ...     def supports(self, models, question):
        ...         return False
        ...     def seconds(self, models, question):
        ...         return 0.0
        ...     def toggles(self, models, question, *, memory):
        ...         raise NotImplementedError
        >>> "never" in engines()
        True
        >>> _ = _ENGINES.pop("never")
    """

    def add(engine: type[E]) -> type[E]:
        _ENGINES[name] = (rank, engine())
        return engine

    return add


def engines() -> dict[str, Engine]:
    """All engines by name, lowest rank first."""
    return {name: engine for name, (_, engine) in sorted(_ENGINES.items(), key=lambda item: item[1][0])}


# An attack asks about its target and about eight simulated ones, each with about nine models. The real number of models
# is not used: simulated targets have fewer references than the target, and should get the same engine.
_QUESTIONS, _MODELS = 9, 9
MODELS_PER_AUDIT = _QUESTIONS * _MODELS  # an attack that asks many more says so by more masks
_BLACK_BOX_WIDTH = 64
_GPU = 100  # times as fast as two cores, about
_FEATURE_COST = 4  # a maximum over raw features is taken feature by feature, for all models at once


def audit_values(model: Profiled, question: Question) -> float:
    """How many numbers change, over all toggles of an audit that asks this about every node, for each of its targets.

    ``model`` is one of the models, which share a shape.
    """
    pairs = len(question.masks) * question.size  # a question about some nodes is one of several, or a check
    module = model.model if isinstance(model.model, nn.Module) else nn.Module()
    weights = [int(weight.shape[0]) for weight in module.parameters() if weight.ndim == 2]
    width = max(weights, default=_BLACK_BOX_WIDTH) * _MODELS  # the widest layer, by the rows of its weights
    if any(isinstance(part, MaxAggregation) for part in module.modules()):
        width += _FEATURE_COST * int(question.x.shape[1])
    return _QUESTIONS * pairs * _rows(question, model.profile.hops) * width


def question_seconds(name: str, models: Stack, question: Question) -> float:
    """How long one question takes: its share of what the named engine predicts for an audit of such questions."""
    share = len(question.nodes) / max(question.size, 1) * len(models) / _MODELS
    return engines()[name].seconds(models, question) / _QUESTIONS * share / (_GPU if question.x.is_cuda else 1)


def _rows(question: Question, hops: int) -> float:
    """How many members are within so many steps of a node, on average, if members are spread evenly."""
    share = float(question.masks.float().mean())
    mean, growth = remembered(question.edge_index, ("degrees", question.size), lambda: _degrees(question))
    rows = 1 + sum(mean * share * (growth * share) ** step for step in range(hops))
    return min(rows, max(share * question.size, 1.0))


def _degrees(question: Question) -> tuple[float, float]:
    """The mean degree, and that of a neighbour, which has more neighbours."""
    degree = torch.bincount(question.edge_index[0], minlength=question.size).double()
    return float(degree.mean()), float((degree**2).mean() / degree.mean().clamp(min=1e-9))


def shape_of(model: Profiled) -> tuple[object, ...]:
    """What must agree for two models to be stacked: the calls of their programs, settings of layers, and shapes."""
    profile = model.profile
    if profile.program is None:
        return ("black box", profile.hops, profile.everywhere)
    state = cast("nn.Module", model.model).state_dict().items()
    shapes = [(name, tuple(value.shape), value.dtype) for name, value in state]
    return (profile.program.signature, profile.probabilities, profile.hops, *shapes)


def by_shape(models: Sequence[Profiled]) -> list[list[int]]:
    """The places of the models in groups of one shape, in the order in which the shapes first appear."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, model in enumerate(models):
        groups.setdefault(shape_of(model), []).append(place)
    return list(groups.values())


_KEPT = 2  # lists of models whose stacks are kept; a chain over two shapes asks about both in turn


def stacks_of(models: Sequence[Profiled], question: Question) -> list[tuple[list[int], Stack]]:
    """The models in stacks of one shape, each with its places; the same ones for all questions in one memory."""
    given = (*models, question.edge_index, question.edge_weight, question.edge_attr, question.edge_type)
    kept: list[tuple[tuple[object, ...], list[tuple[list[int], Stack]]]] = remembered(question.x, "stacks", list)
    for others, stacks in kept:  # these very models and tensors: values would take long to compare
        if len(others) == len(given) and all(map(operator.is_, others, given)):
            return stacks
    stacks = [(numbers, Stack(models[number] for number in numbers)) for numbers in by_shape(models)]
    kept.append((given, stacks))
    del kept[:-_KEPT]
    return stacks


_SECONDS = 4.0  # of a block, as predicted; how it is split changes last bits, so it must depend on the question alone
_SHORT = 0.5  # the same where a split changes no bit: no worker waits long for the last block


class Block(NamedTuple):
    """A part of a question: ranges of its masks and of its nodes."""

    masks: tuple[int, int]
    nodes: tuple[int, int]


def cut_question(masks: int, nodes: int, *, seconds: float, each: float = _SECONDS) -> list[Block]:
    """Blocks of ``each`` predicted seconds: whole masks, or parts of one mask's nodes if one mask takes longer."""
    wanted = max(1, int(seconds / each))
    groups = min(wanted, masks)
    parts = min(max(1, wanted // max(masks, 1)), max(nodes, 1))
    return [Block(rows, columns) for rows in even_cuts(masks, groups) for columns in even_cuts(nodes, parts)]


def answer_in_blocks(name: str, models: Stack, question: Question, *, memory: int) -> Tensor:
    """S and own losses [2, models, masks, nodes] by a named engine, for models of one shape.

    If the engine's answers about a node do not depend on what else is asked, and there are no workers, the question
    stays whole; otherwise it is cut, so that the same question gives the same bytes wherever it is answered. A block
    may take ``memory`` bytes.
    """
    engine = engines()[name]
    blocks, seconds = blocks_of(name, models, question)
    if len(blocks) == 1 or (getattr(engine, "apart", False) and not is_worth_spreading(seconds)):
        return torch.stack(tuple(engine.toggles(models, question, memory=memory)))
    shape = (2, len(models), len(question.masks), len(question.nodes))
    found = torch.empty(shape, dtype=torch.float64, device=question.x.device)
    with open_bar(total=len(blocks), label="Toggled nodes", unit="blocks") as done:
        for at, part in spread(answer_block, (name, models, question, memory), blocks, seconds=seconds):
            rows, columns = blocks[at]
            own = np.require(part, requirements="W")  # what comes from a cluster may be read only
            found[:, :, slice(*rows), slice(*columns)] = torch.from_numpy(own).to(found.device)
            done(1)
    return found


def blocks_of(name: str, models: Stack, question: Question) -> tuple[list[Block], float]:
    """The blocks of a question for a named engine, and the seconds that are predicted for all of them."""
    seconds = question_seconds(name, models, question)
    each = _SHORT if getattr(engines()[name], "apart", False) else _SECONDS
    return cut_question(len(question.masks), len(question.nodes), seconds=seconds, each=each), seconds


def answer_block(name: str, models: Stack, question: Question, memory: int, block: Block) -> FloatArray:
    """S and own losses of one block, [2, models, masks, nodes]."""
    rows, columns = slice(*block.masks), slice(*block.nodes)
    part = dataclasses.replace(question, masks=question.masks[rows], nodes=question.nodes[columns])
    with open_memory(), evaluation_mode(models):
        answer: Any = torch.stack(tuple(engines()[name].toggles(models, part, memory=memory)))
    return answer.cpu().numpy()  # type: ignore[no-any-return]
