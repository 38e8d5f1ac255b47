"""Programs of models with one signature, lowered to operations on stacked values.

For each operation it is known which ball of rows a toggle changes; kept values and changed rows give the losses, and
these the signal of eq. (6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.models.profile import Profiled
from glasshouse.graph.programs.program import MessageStep, Value
from glasshouse.graph.programs.rows import stacked_rows
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.balls import Rings, Step, add_ring, draw_rings
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.layer import Cost, Kept, Layer, under_every_mask
from glasshouse.graph.rule.incremental.maximum import for_features
from glasshouse.graph.rule.incremental.operations import (
    SAMPLE,
    Builder,
    MessageOperation,
    Operation,
    RowOperation,
    Slot,
    asked_operation,
    formula_operations,
    sources_of,
)
from glasshouse.graph.rule.incremental.segments import segment_sum, starts_of
from glasshouse.graph.rule.incremental.triton import row_margins
from glasshouse.graph.rule.question import Question, node_losses

Asking = Literal["formula", "layer", "model"]


def lower(models: Sequence[Profiled], question: Question, *, asking: Asking = "formula") -> list[Operation]:
    """The operations of models that share a program; the last one gives the logits.

    Args:
        models: of one shape.
        question: about a graph.
        asking: what makes the rows that a toggle changes: the formulas of layers where there are some, the layers
            themselves, or the whole models, as one step that nothing is known about but its reach.
    """
    profile = models[0].profile
    edges = {name: value.unsqueeze(1) for name, value in question.edge_values().items()}  # [edges, 1, ...]
    program = profile.program
    if asking == "model" or program is None:
        type_of_rows = question.x.dtype if question.x.is_floating_point() else torch.float32
        build = Builder(models=len(models), device=question.x.device, dtype=type_of_rows)
        whole = _whole_step(profile.hops, both_ways=bool(profile.both_ways), edges=tuple(edges))
        asked, labels = [partial(_ask, model) for model in models], int(question.labels.max()) + 1
        slots = {"x": build.features(question.x)}
        asked_operation(whole, asked, build, slots, edges, classes=max(1, labels), inside=_HIDDEN)
        return build.operations
    roots: list[Any] = [model.root for model in models]
    device, dtype = _value_at(roots[0], question)
    build = Builder(models=len(models), device=device, dtype=dtype)
    slots = {"x": build.features(question.x)}
    for step in program.steps:
        if isinstance(step, MessageStep):
            given = [root.get_submodule(step.module) for root in roots], build, slots, edges
            made = formula_operations(step, *given) if asking == "formula" else None
            slots[step.name] = asked_operation(step, *given) if made is None else made
        elif step.on == "edges":  # no toggle changes the values of an edge
            inputs = [edges[name] for name in step.inputs]
            edges[step.name] = stacked_rows(step, roots, [value[:SAMPLE] for value in inputs])(*inputs)
        else:
            sources = [slots[name] for name in step.inputs]
            function = stacked_rows(step, roots, [source.sample for source in sources])
            slots[step.name] = build.rows(function, *sources)
    output = slots[program.output]
    output = build.rows(_log, output) if profile.probabilities else output
    return _in_use(build.operations, output, question)


_HIDDEN = 256  # assumed width inside a black box, to estimate its memory


def _whole_step(hops: int, *, both_ways: bool, edges: tuple[str, ...]) -> MessageStep:
    """A model as one step of a program, called with features, edges and values of edges."""
    given = {name: Value(name) for name in ("x", "edge_index", *edges)}
    call: dict[str, Any] = {"inputs": ("x",), "edges": edges, "args": (), "kwargs": given}
    # a model without edges changes nothing at one hop
    return MessageStep(name="logits", module="", hops=max(1, hops), both_ways=both_ways, **call)


def _ask(model: Profiled, **given: Tensor) -> Tensor:
    return model.logits(Data(**given))


def _log(rows: Tensor) -> Tensor:
    """Logits from probabilities, as `glasshouse.graph.models.profile.Profiled.logits` makes them."""
    return rows.clamp(min=torch.finfo(rows.dtype).eps).log()


def _value_at(root: Any, question: Question) -> tuple[torch.device, torch.dtype]:
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


_ROW_COPIES = 2  # of a row while a row-wise operation on several values works: inputs and result


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangedBalls:
    """An operation, and which balls it reads and writes."""

    operation: Operation
    inner: int  # the ball whose changed rows it reads; 0 if its inputs do not change
    outer: int | None  # the ball whose rows it makes; None if no toggle changes them
    keeps: bool = False  # whether later operations need its values under every mask, beside rows that changed

    def cost(self) -> Cost:
        """Memory that it takes; a message-passing layer knows its own."""
        result = self.operation.result.sample
        size = result.shape[1] * result.shape[2] * result.element_size()
        kept = size if self.keeps else 0
        if isinstance(self.operation, RowOperation):
            alone = len(self.operation.sources) == 1  # it works in the rows that its layer has counted
            return Cost(node=kept, row=size if alone else _ROW_COPIES * size, path=0)
        own = self.operation.layer.cost(shared=self.operation.source.shared)
        return Cost(node=own.node + kept, row=own.row, path=own.path)


def changed_balls(operations: Sequence[Operation], *, radius: int | None) -> list[ChangedBalls]:
    """For each operation the balls that it reads and writes; ``radius`` is the outermost whose answers are wanted."""
    ball: dict[int, int] = {}  # by slot, for values that a toggle changes
    placed: list[ChangedBalls] = []
    for one in operations:
        if isinstance(one, MessageOperation):
            inner = ball.get(one.source.number, 0)
            inner = max(inner, 1) if one.layer.divides_by_degree else inner  # a degree changes one hop away at once
            outer: int | None = inner + one.layer.hops if radius is None else min(inner + one.layer.hops, radius)
        else:
            changed = [ball[source.number] for source in one.sources if source.number in ball]
            inner, outer = max(changed, default=0), max(changed, default=None)
        if outer is not None:
            ball[one.result.number] = outer
        placed.append(ChangedBalls(operation=one, inner=inner, outer=outer))
    kept: set[int] = set()  # what a row-wise operation reads in a larger ball than it changes in, or never changes
    for place in placed:
        if isinstance(place.operation, RowOperation) and place.outer is not None:
            kept |= {source.number for source in place.operation.sources if ball.get(source.number) != place.outer}
    return [replace(place, keeps=place.operation.result.number in kept) for place in placed]


def first_that_drops(placed: Sequence[ChangedBalls]) -> int | None:
    """From which layer on rows that turn out not to change can be left out; None if they never can.

    The program must be a chain: each changed value is read only by the next operation, and each ball is one further.
    No later layer may count its senders, since rows with the same inputs then change too.
    """
    layers: list[Layer] = []
    before: Operation | None = None
    for one in placed:
        if one.outer is None:
            continue
        operation = one.operation
        sources = sources_of(operation)
        if before is not None and (len(sources) != 1 or sources[0] is not before.result):
            return None
        if isinstance(operation, MessageOperation):
            if (one.inner, one.outer, operation.layer.hops) != (len(layers), len(layers) + 1, 1):
                return None
            layers.append(operation.layer)
        before = operation
    counting = [number for number, layer in enumerate(layers) if layer.counts_senders]
    return max(counting, default=0)


def row_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """As `node_losses` for each row [rows] and model, float64 [rows, models], from logits [rows, models, classes]."""
    if not triton.usable(logits):
        return node_losses(logits, labels.unsqueeze(1))
    margins = row_margins(logits, labels.clamp(0, logits.shape[-1] - 1))
    found = torch.nn.functional.softplus(margins, threshold=40.0)  # as tensor_losses
    return found.masked_fill((labels < 0).unsqueeze(1), 0.0)


@dataclass(frozen=True, kw_only=True)
class LossesToSignal:
    """What turns logits into signals."""

    labels: Tensor  # [N]
    kept_loss: Tensor  # [N, models]
    classes: int

    @classmethod
    def of(cls, labels: Tensor, logits: Tensor) -> LossesToSignal:
        """From the labels [N] and the kept logits [N, models, classes]."""
        loss = row_losses(logits, labels)
        return cls(labels=labels, kept_loss=loss, classes=int(logits.shape[-1]))

    def signals(self, logits: Tensor, rings: Rings, *, outer: int) -> Tensor:
        """Eq. (6) and own losses from the toggled logits [rows, models, classes] of a ball, [targets, 2, models]."""
        ball = rings.balls[outer]
        after = row_losses(logits, self.labels[ball.node])
        removed = rings.removes.unsqueeze(1)
        own = torch.where(removed, self.kept_loss[rings.targets], after[ball.centre])  # loss_v(in)
        change = after - self.kept_loss.index_select(0, ball.node)
        change[ball.centre] = 0
        total = segment_sum(change, starts_of(ball.target, len(rings.targets)))
        return torch.stack([own + torch.where(removed, -total, total), own], dim=1)


@dataclass(frozen=True, kw_only=True)
class ForwardState:
    """The state of a program after the forward pass under a group of masks."""

    placed: Sequence[ChangedBalls]
    drops: int | None  # see `first_that_drops`
    graph: MaskedGraph
    layers: Sequence[Kept]  # the state of each message-passing layer, in order
    values: Mapping[int, Tensor]  # by slot, those that toggles read: [N, models or 1, width], or [n, ...]

    def signals(self, targets: Tensor, ends: LossesToSignal) -> Tensor:
        """S and own losses of some targets, [targets, 2, models]."""
        rings = draw_rings(self.graph, targets, radius=self.outermost if self.drops is None else 0)
        return ends.signals(self.logits(rings).expand(-1, ends.kept_loss.shape[1], -1), rings, outer=self.outermost)

    @property
    def outermost(self) -> int:
        """The ball whose answers are wanted."""
        return max(one.outer for one in self.placed if one.outer is not None)

    def logits(self, rings: Rings) -> Tensor:
        """The toggled logits of the rows of the outermost ball, [rows, models or 1, classes].

        Balls of nodes are drawn as they are needed, from rows that turned out to change.
        """
        drops = self.drops
        changed: dict[int, tuple[int, Tensor]] = {}  # by slot: the ball, and the new values of its rows
        layers = iter(self.layers)
        for one in self.placed:
            operation = one.operation
            if isinstance(operation, MessageOperation):
                kept = next(layers)
                if one.outer is None:
                    continue
                _, fresh = changed.get(operation.source.number, (0, None))
                if one.outer == len(rings.balls):
                    add_ring(rings)
                values, alive = kept.toggle(fresh, Step(rings, one.inner, one.outer))
                if drops is not None and alive is not None and drops <= one.inner < self.outermost - 1:
                    rings.balls[-1], values = rings.balls[-1].only(alive), values[alive]
            elif one.outer is None:
                continue
            else:
                values = operation.function(*map(partial(self._at, rings, one.outer, changed), operation.sources))
            changed[operation.result.number] = (one.outer, values)
        return changed[self.placed[-1].operation.result.number][1]

    def _at(self, rings: Rings, ball: int, changed: Mapping[int, tuple[int, Tensor]], slot: Slot) -> Tensor:
        """A value in all rows of a ball: new where it changed, kept elsewhere."""
        node = rings.balls[ball].node
        if slot.number not in changed:
            return self.values[slot.number][node % self.graph.size]
        inner, fresh = changed[slot.number]
        if inner == ball:
            return fresh
        values = self.values[slot.number][node]
        values[rings.places(inner, ball)] = fresh
        return values


def forward_state(
    placed: Sequence[ChangedBalls], x: Tensor, graph: MaskedGraph, *, limit: int
) -> tuple[ForwardState, Tensor]:
    """The forward pass of features [n, width] under all masks: the state, and the logits [N, models, classes].

    Temporary arrays may take ``limit`` bytes.
    """
    layers: list[Kept] = []

    def keep(layer: Layer, inputs: Tensor) -> Tensor:
        state, made = layer.keep(inputs, graph, limit=limit)
        layers.append(state)
        return made

    needed = {0, *(one.operation.result.number for one in placed if one.keeps)}  # layers hold what else toggles need
    values, logits = _passed(placed, x, graph, keep, needed=needed)
    kept = {slot: value for slot, value in values.items() if slot in needed}
    drops = first_that_drops(placed)
    return ForwardState(placed=placed, drops=drops, graph=graph, layers=layers, values=kept), logits


def program_logits(placed: Sequence[ChangedBalls], x: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
    """The logits [N, models, classes] of `forward_state` alone, where nothing is toggled; arguments as there."""

    def run(layer: Layer, inputs: Tensor) -> Tensor:
        return layer.outputs(inputs, graph, limit=limit)

    return _passed(placed, x, graph, run, needed=frozenset())[1]


def _passed(
    placed: Sequence[ChangedBalls],
    x: Tensor,
    graph: MaskedGraph,
    run: Callable[[Layer, Tensor], Tensor],
    *,
    needed: AbstractSet[int],
) -> tuple[dict[int, Tensor], Tensor]:
    """Values by slot and the logits, with ``run`` for every layer; slots that nothing reads any more are freed."""
    # everything is in one type; whole numbers may be codes
    x = x.to(placed[-1].operation.result.sample.dtype) if x.is_floating_point() else x
    values: dict[int, Tensor] = {0: x.unsqueeze(1)}
    last = {source.number: number for number, one in enumerate(placed) for source in sources_of(one.operation)}
    for number, one in enumerate(placed):
        operation = one.operation
        given = [values[source.number] for source in sources_of(operation)]
        if isinstance(operation, MessageOperation):
            made = run(operation.layer, given[0])
        elif len({len(value) for value in given}) == 1:
            made = operation.function(*given)
        else:  # those that never change are repeated for each mask
            made = operation.function(*[under_every_mask(value, graph) for value in given])
        values[operation.result.number] = made
        for slot in {source.number for source in sources_of(operation)} - needed:
            if last[slot] == number:
                del values[slot]
    return values, under_every_mask(values[placed[-1].operation.result.number], graph)
