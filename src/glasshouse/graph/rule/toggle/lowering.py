"""From programs of models that share a signature to operations on stacked values, which the engine toggles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.models.asking import asked, manners_of
from glasshouse.graph.models.layer_types import LAYER_TYPES, arguments_of
from glasshouse.graph.models.model import Model
from glasshouse.graph.programs.program import MessageStep
from glasshouse.graph.programs.stacked import RowFunction, stacked_rows
from glasshouse.graph.rule.question import Question
from glasshouse.graph.rule.toggle.layers.base import Layer
from glasshouse.graph.rule.toggle.layers.sparse_maximum import for_features
from glasshouse.graph.rule.toggle.layers.unknown import Unknown

__all__ = ["Builder", "MessageOperation", "Operation", "RowOperation", "Slot", "lower", "sources_of"]

_SAMPLE = 4  # rows that every value has while a program is lowered, to learn widths and to compare ways to compute


@dataclass(frozen=True, eq=False)
class Slot:
    """A value of the stacked program.

    Args:
        number: its place.
        sample: a few rows [rows, models or 1, width] of random numbers, of its width and type.
        fixed: whether it depends on a node's own features alone, so that no toggle changes it.
    """

    number: int
    sample: Tensor
    fixed: bool

    @property
    def width(self) -> int:
        """Columns of one model."""
        return int(self.sample.shape[2])

    @property
    def shared(self) -> bool:
        """Whether it is the same for all models, [rows, 1, width]."""
        return int(self.sample.shape[1]) == 1


@dataclass(frozen=True, kw_only=True, eq=False)
class MessageOperation:
    """A stacked layer that reads one value."""

    layer: Layer
    source: Slot
    result: Slot


@dataclass(frozen=True, kw_only=True, eq=False)
class RowOperation:
    """A row-wise function of one or several values."""

    function: RowFunction
    sources: tuple[Slot, ...]
    result: Slot


Operation = MessageOperation | RowOperation


def sources_of(operation: Operation) -> tuple[Slot, ...]:
    """The values that an operation reads."""
    return (operation.source,) if isinstance(operation, MessageOperation) else operation.sources


@dataclass(kw_only=True)
class Builder:
    """Collects the operations of K models; a layer type adds those of its layer.

    Args:
        models: K.
        device: of the weights.
        dtype: that the models compute in.

    Example:
        >>> from glasshouse.graph.rule.toggle.layers.summed import Summed
        >>> build = Builder(models=2, device=torch.device("cpu"), dtype=torch.float32)
        >>> features = build.features(torch.randn(9, 3))
        >>> hidden = build.message(Summed.of(weight=torch.ones(2, 3, 4), bias=None, normalisation="none"), features)
        >>> build.rows(torch.relu, hidden).width
        4
    """

    models: int
    device: torch.device
    dtype: torch.dtype
    operations: list[Operation] = field(default_factory=list)
    _slots: int = 0

    def features(self, x: Tensor) -> Slot:
        """The nodes' features [n, width], which all models share; whole numbers stay so, as they may be codes."""
        rows = x[:_SAMPLE].to(self.device)
        return self._slot((rows.to(self.dtype) if x.is_floating_point() else rows).unsqueeze(1), fixed=True)

    def message(self, layer: Layer, source: Slot, *, shared: bool = False) -> Slot:
        """Add one step of message passing; ``shared`` if its result is the same for all models."""
        result = self._slot(self._random(1 if shared else self.models, layer.width), fixed=False)
        self.operations.append(MessageOperation(layer=layer, source=source, result=result))
        return result

    def rows(self, function: RowFunction, *sources: Slot) -> Slot:
        """Add a function that makes each row from the same rows of its sources, [rows, models or 1, width]."""
        sample = function(*[source.sample for source in sources])
        result = self._slot(sample, fixed=all(source.fixed for source in sources))
        self.operations.append(RowOperation(function=function, sources=sources, result=result))
        return result

    def _random(self, models: int, width: int) -> Tensor:
        source = torch.Generator().manual_seed(self._slots)
        return torch.randn(_SAMPLE, models, width, generator=source).to(self.device, self.dtype)

    def _slot(self, sample: Tensor, *, fixed: bool) -> Slot:
        self._slots += 1
        return Slot(self._slots - 1, sample, fixed)


def lower(models: Sequence[Model], question: Question) -> list[Operation]:
    """The operations of models that share a program; the last one gives the logits.

    Example:
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.asking import meet
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> from glasshouse.graph.rule.question import ask
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> models = [build_gnn("gcn", features=2, hidden=4, classes=2) for _ in range(3)]
        >>> meet(models, data)
        >>> question = ask(data, torch.ones(1, 2, dtype=torch.bool), torch.tensor([0]))
        >>> [type(one).__name__ for one in lower(models, question)]
        ['MessageOperation', 'RowOperation', 'MessageOperation']
    """
    manners = manners_of(models[0])
    program = manners.program
    if program is None:
        raise TypeError("these models have no program; ask Layered.supports first")
    roots: list[Any] = [asked(model) for model in models]
    device, dtype = _place(roots[0], question)
    build = Builder(models=len(models), device=device, dtype=dtype)
    slots: dict[str, Slot] = {"x": build.features(question.x)}
    edges = {name: value.unsqueeze(1) for name, value in question.edge_values().items()}  # [edges, 1, ...]
    for step in program.steps:
        if isinstance(step, MessageStep):
            slots[step.name] = _layer(step, roots, build, slots, edges)
        elif step.on == "edges":  # no toggle changes the values of an edge
            given = [edges[name] for name in step.inputs]
            edges[step.name] = stacked_rows(step, roots, [value[:_SAMPLE] for value in given])(*given)
        else:
            sources = [slots[name] for name in step.inputs]
            function = stacked_rows(step, roots, [source.sample for source in sources])
            slots[step.name] = build.rows(function, *sources)
    output = slots[program.output]
    output = build.rows(_log, output) if manners.probabilities else output
    return _in_use(build.operations, output, question)


def _layer(
    step: MessageStep, roots: Sequence[Any], build: Builder, slots: Mapping[str, Slot], edges: Mapping[str, Tensor]
) -> Slot:
    """Add one message-passing call: in the form of its type if there is one, else by calls of the layer itself."""
    layers = [root.get_submodule(step.module) for root in roots]
    given = arguments_of(layers[0], step)
    kind = LAYER_TYPES.get(type(layers[0]))
    if kind is not None and kind.understands(layers[0], given):
        names = {name: value.name for name, value in given.items() if name in kind.arguments}
        if all(name in edges for name in names.values()):
            values = {argument: edges[name] for argument, name in names.items()}
            made: Slot | None = kind.toggled(layers, build, slots[step.inputs[0]], **values)
            if made is not None:
                return made
    sources = [slots[name] for name in step.inputs]
    joined = sources[0] if len(sources) == 1 else build.rows(_joined, *sources)
    widths = tuple(source.width for source in sources)
    values = {name: edges[name] for name in step.edges}
    return build.message(Unknown.of(step, layers, widths=widths, edges=values, sample=joined.sample), joined)


def _joined(*rows: Tensor) -> Tensor:
    """Values side by side, [rows, models, sum of widths]."""
    models = max(one.shape[1] for one in rows)
    return torch.cat([one.expand(-1, models, -1) for one in rows], dim=2)


def _log(rows: Tensor) -> Tensor:
    """Logits from probabilities, as `glasshouse.graph.models.asking.ask_model` makes them."""
    return rows.clamp(min=torch.finfo(rows.dtype).eps).log()


def _place(root: Any, question: Question) -> tuple[torch.device, torch.dtype]:
    for parameter in root.parameters():
        return parameter.device, parameter.dtype
    return question.x.device, question.x.dtype


def _suited(operation: Operation, question: Question) -> Operation:
    """An operation that reads the features, in the form that suits them."""
    if not isinstance(operation, MessageOperation) or operation.source.number != 0:
        return operation
    return replace(operation, layer=for_features(operation.layer, question.x, question.edge_index))


def _in_use(operations: Sequence[Operation], output: Slot, question: Question) -> list[Operation]:
    """The operations up to the one that makes the output; an activation may write into what only it reads."""
    last = next(place for place, one in enumerate(operations) if one.result is output)
    used = [_suited(one, question) for one in operations[: last + 1]]
    read = [slot.number for one in used for slot in sources_of(one)]
    fresh = {one.result.number for one in used if isinstance(one, MessageOperation) and one.result is not output}
    return [
        replace(one, function=getattr(one.function, "overwriting", one.function))
        if isinstance(one, RowOperation)
        and len(one.sources) == 1
        and one.sources[0].number in fresh
        and read.count(one.sources[0].number) == 1
        else one
        for one in used
    ]
