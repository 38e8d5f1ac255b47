"""Where changes go in a stacked program: for each operation the ball whose rows change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from glasshouse.graph.rule.toggle.layers.base import Cost, Layer
from glasshouse.graph.rule.toggle.lowering import MessageOperation, Operation, RowOperation, sources_of

__all__ = ["LayerStep", "Placed", "chain_of", "place"]

_ROW_COPIES = 2  # of a row while a row-wise operation on several values works: inputs and result


@dataclass(frozen=True, kw_only=True, eq=False)
class Placed:
    """An operation, and which balls it reads and writes.

    Args:
        operation: of the stacked program.
        inner: the ball whose changed rows it reads; 0 if its inputs do not change.
        outer: the ball whose rows it makes; None if no toggle changes them.
        keeps: whether later operations need its values under every mask, beside rows that changed.
    """

    operation: Operation
    inner: int
    outer: int | None
    keeps: bool

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


def place(operations: Sequence[Operation], *, radius: int | None) -> list[Placed]:
    """For each operation the balls that it reads and writes.

    Args:
        operations: of the stacked program.
        radius: the outermost ball whose answers are wanted; None for all that change.

    Example:
        >>> import torch
        >>> from glasshouse.graph.rule.toggle.layers.summed import Summed
        >>> from glasshouse.graph.rule.toggle.lowering import Builder
        >>> build = Builder(models=1, device=torch.device("cpu"), dtype=torch.float32)
        >>> layer = Summed.of(weight=torch.ones(1, 2, 2), bias=None, normalisation="symmetric")
        >>> _ = build.message(layer, build.message(layer, build.features(torch.ones(3, 2))))
        >>> [(one.inner, one.outer) for one in place(build.operations, radius=2)]
        [(1, 2), (2, 2)]
    """
    ball: dict[int, int] = {}  # by slot, for values that a toggle changes
    placed: list[Placed] = []
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
        placed.append(Placed(operation=one, inner=inner, outer=outer, keeps=False))
    kept = _kept(placed, ball)
    return [
        Placed(operation=one.operation, inner=one.inner, outer=one.outer, keeps=one.operation.result.number in kept)
        for one in placed
    ]


def _kept(placed: Sequence[Placed], ball: dict[int, int]) -> set[int]:
    """Values that a row-wise operation reads in a larger ball than they change in, or that never change."""
    kept = set()
    for one in placed:
        if isinstance(one.operation, RowOperation) and one.outer is not None:
            kept |= {source.number for source in one.operation.sources if ball.get(source.number) != one.outer}
    return kept


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerStep:
    """A stacked layer, and what follows it up to the next one."""

    layer: Layer
    after: Callable[[Tensor], Tensor]


def chain_of(placed: Sequence[Placed]) -> list[LayerStep] | None:
    """The layers in order, if each changed value is read only by the next operation and each ball is one further.

    Such a program can be followed outward from the targets, and rows that turn out not to change are dropped.
    """
    steps: list[LayerStep] = []
    before: Operation | None = None
    for one in placed:
        if one.outer is None:
            continue
        operation = one.operation
        sources = sources_of(operation)
        if before is not None and (len(sources) != 1 or sources[0] is not before.result):
            return None
        if isinstance(operation, MessageOperation):
            if (one.inner, one.outer, operation.layer.hops) != (len(steps), len(steps) + 1, 1):
                return None
            steps.append(LayerStep(layer=operation.layer, after=_same))
        else:
            steps[-1] = LayerStep(layer=steps[-1].layer, after=_then(steps[-1].after, operation.function))
        before = operation
    return steps


def _same(rows: Tensor) -> Tensor:
    return rows


def _then(first: Callable[[Tensor], Tensor], second: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    return second if first is _same else lambda rows: second(first(rows))
