"""A stacked program under a group of masks: its kept values, and the rows that a toggle changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings, draw_rings
from glasshouse.graph.rule.toggle.layers.base import Kept, Layer, outputs_of, under_every_mask
from glasshouse.graph.rule.toggle.lowering import MessageOperation, Slot, sources_of
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.signals import Ends
from glasshouse.graph.rule.toggle.stages import Placed

__all__ = ["KeptProgram", "keep_program", "program_logits"]


@dataclass(frozen=True, kw_only=True)
class KeptProgram:
    """The state of a program after the forward pass under a group of masks.

    Args:
        placed: the operations and their balls.
        graph: the union of the masks' graphs.
        layers: the state of each message-passing layer, in order.
        values: by slot, the kept values that toggles read: [N, models or 1, width], or [n, ...] if they never change.
    """

    placed: Sequence[Placed]
    graph: MaskedGraph
    layers: Sequence[Kept]
    values: Mapping[int, Tensor]

    def signals(self, targets: Tensor, ends: Ends) -> Tensor:
        """S and own losses of some targets, [targets, 2, models]."""
        outermost = max(one.outer for one in self.placed if one.outer is not None)
        around = any(isinstance(one.operation, MessageOperation) and one.inner == one.outer for one in self.placed)
        rings = draw_rings(self.graph, targets, radius=outermost, around=around)
        changed: dict[int, tuple[int, Tensor]] = {}  # by slot: the ball, and the new values of its rows
        layers = iter(self.layers)
        for one in self.placed:
            operation = one.operation
            if isinstance(operation, MessageOperation):
                kept = next(layers)
                if one.outer is None:
                    continue
                _, fresh = changed.get(operation.source.number, (0, None))
                values = kept.toggle(fresh, rings, inner=one.inner, outer=one.outer).values
            elif one.outer is None:
                continue
            else:
                values = operation.function(*map(partial(self._at, rings, one.outer, changed), operation.sources))
            changed[operation.result.number] = (one.outer, values)
        last = self.placed[-1]
        logits = changed[last.operation.result.number][1].expand(-1, ends.kept_loss.shape[1], -1)
        return ends.signals(logits, rings, outer=int(last.outer or 0))

    def _at(self, rings: Rings, ball: int, changed: Mapping[int, tuple[int, Tensor]], slot: Slot) -> Tensor:
        """A value in all rows of a ball: new where it changed, kept elsewhere."""
        node = rings.balls[ball].node
        if slot.number not in changed:
            return self.values[slot.number][node % self.graph.size]
        inner, fresh = changed[slot.number]
        if inner == ball:
            return fresh
        place = torch.arange(len(fresh), device=node.device)
        for ring in range(inner, ball):
            place = rings.outward[ring].inside[place]
        values = self.values[slot.number][node]
        values[place] = fresh
        return values


def keep_program(placed: Sequence[Placed], x: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptProgram, Tensor]:
    """The forward pass under all masks: the state, and the logits [N, models, classes].

    Args:
        placed: the operations and their balls.
        x: the features [n, width].
        graph: the union of the masks' graphs.
        limit: bytes that temporary arrays may take.
    """
    layers: list[Kept] = []

    def keep(layer: Layer, inputs: Tensor) -> Tensor:
        state, made = layer.keep(inputs, graph, limit=limit)
        layers.append(state)
        return made

    needed = {0, *(one.operation.result.number for one in placed if one.keeps)}  # layers hold what else toggles need
    values, logits = _passed(placed, x, graph, keep, needed=needed)
    kept = {slot: value for slot, value in values.items() if slot in needed}
    return KeptProgram(placed=placed, graph=graph, layers=layers, values=kept), logits


def program_logits(placed: Sequence[Placed], x: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
    """The logits [N, models, classes] of `keep_program` alone, where nothing is toggled; arguments as there."""
    run = partial(outputs_of, graph=graph, limit=limit)
    return _passed(placed, x, graph, run, needed=frozenset())[1]


def _passed(
    placed: Sequence[Placed],
    x: Tensor,
    graph: MaskedGraph,
    run: Callable[[Layer, Tensor], Tensor],
    *,
    needed: AbstractSet[int],
) -> tuple[dict[int, Tensor], Tensor]:
    """Values by slot and the logits, with ``run`` for every layer; slots that nothing reads any more are freed."""
    values: dict[int, Tensor] = {0: x.unsqueeze(1)}
    readers = _last_readers(placed)
    for number, one in enumerate(placed):
        operation = one.operation
        if isinstance(operation, MessageOperation):
            made = run(operation.layer, values[operation.source.number])
        else:
            made = operation.function(*_together([values[source.number] for source in operation.sources], graph))
        values[operation.result.number] = made
        for slot in [slot for slot, last in readers.items() if last == number and slot in values]:
            if slot not in needed:
                del values[slot]
    return values, under_every_mask(values[placed[-1].operation.result.number], graph)


def _together(values: list[Tensor], graph: MaskedGraph) -> list[Tensor]:
    """Values of one row-wise operation with equally many rows: those that never change are repeated for each mask."""
    if len({len(value) for value in values}) == 1:
        return values
    return [under_every_mask(value, graph) for value in values]


def _last_readers(placed: Sequence[Placed]) -> dict[int, int]:
    """By slot, the number of the last operation that reads it."""
    readers: dict[int, int] = {}
    for number, one in enumerate(placed):
        readers.update({source.number: number for source in sources_of(one.operation)})
    return readers
