"""GraphSAGE-max: the largest senders of each value are kept, so that some can be removed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Ball, Paths, Rings
from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.fused.maxima import toggled_maxima
from glasshouse.graph.rule.toggle.layers.base import Cost, Toggled, project, under_every_mask
from glasshouse.graph.rule.toggle.layers.largest import Largest, bag_max, find_largest, largest_other, largest_values
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph

__all__ = ["Maximum"]

_RANKS = 4  # senders kept for each value; beyond them a value is looked up among all senders


@dataclass(frozen=True, kw_only=True)
class Maximum:
    """``weight * max over senders of their inputs + root * own input + bias``; a maximum without senders is 0.

    Args:
        weight: [models, width, out].
        root: [models, width, out] or None.
        bias: [models, out] or None.

    Example:
        >>> Maximum(weight=torch.ones(2, 3, 4), root=None, bias=None).divides_by_degree
        False
    """

    weight: Tensor
    root: Tensor | None
    bias: Tensor | None
    divides_by_degree: bool = False
    counts_senders: bool = False
    hops: int = 1

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return int(self.weight.shape[2])

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        models, width, out = self.weight.shape
        size = self.weight.element_size()
        values = (1 if shared else models) * width
        ranks = 2 if shared else _RANKS
        return Cost(
            node=values * (2 * size + 4 * ranks) + models * out * size,
            # a kernel writes the new maxima alone; torch has several copies, and positions that a maximum reports
            row=values * (2 * size if jit.usable(self.weight) else 5 * size + 16) + models * out * 3 * size,
            path=32,
        )

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptMaximum, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        inputs = under_every_mask(inputs, graph)
        values = inputs.reshape(len(inputs), -1)
        # the first layer can lose only one sender, the target; later ones may lose several at once
        largest = find_largest(values, graph, ranks=2 if inputs.shape[1] == 1 else _RANKS, limit=limit)
        kept = KeptMaximum(layer=self, values=values, largest=largest, root=self._root(inputs), limit=limit)
        return kept, self.combine(largest.value.clone(), kept.root)

    def outputs(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.LeanLayer`: without the senders after the largest."""
        root = self._root(inputs)  # of features once, not under each mask
        values = under_every_mask(inputs, graph)
        maxima = largest_values(values.reshape(len(values), -1), graph, limit=limit)
        return self.combine(maxima, root if len(root) == 1 else under_every_mask(root, graph))

    def combine(self, maxima: Tensor, root: Tensor) -> Tensor:
        """Outputs [rows, models, out] from maxima [rows, values], which it may overwrite; -inf without senders."""
        maxima[(maxima[:, 0] == -torch.inf).nonzero().squeeze(1)] = 0
        return project(maxima.view(len(maxima), -1, self.weight.shape[1]), self.weight) + root

    def _root(self, inputs: Tensor) -> Tensor:
        """What a node's own input [rows, models, width] adds to its output, [rows, models, out]."""
        models, _, out = self.weight.shape
        root = inputs.new_zeros(1, models, out) if self.root is None else project(inputs, self.root)
        return root if self.bias is None else root + self.bias


@dataclass(frozen=True, kw_only=True)
class KeptMaximum:
    """A maximum layer's state: inputs [N, values], their largest senders, and what the root adds [N, models, out]."""

    layer: Maximum
    values: Tensor
    largest: Largest
    root: Tensor
    limit: int

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`."""
        ball, paths = rings.balls[outer], rings.paths(inner, outer)
        maxima, alive = (self._fused if jit.usable(self.values) else self._maxima)(changed, rings, inner, outer)
        alive[ball.centre] = True
        if changed is not None:
            alive[paths.inside] = True
        root = self.root if len(self.root) == 1 else self.root[ball.node]
        if changed is not None and self.layer.root is not None:
            root[paths.inside] = self.layer._root(changed)
        return Toggled(self.layer.combine(maxima, root), alive)

    def _maxima(self, changed: Tensor | None, rings: Rings, inner: int, outer: int) -> tuple[Tensor, Tensor]:
        """New maxima of the outer ball [rows, values], and whether each row differs, bool [rows]."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        if changed is None:
            table, index = self.values, source.node
        else:
            table, index = changed.reshape(len(changed), -1), torch.arange(len(source.node), device=source.node.device)
        gone, new = _targets(source, rings)
        arrived = bag_max(table, index, paths, without=gone)
        left = bag_max(self.values, source.node, paths, without=new)
        self._loops(table, index, source, paths, arrived, left)
        maxima = self.largest.value[ball.node]
        # if a changed sender had the maximum and nothing new reaches it, the next largest has to be found
        lost = (left >= maxima) & (arrived < maxima)
        torch.maximum(maxima, arrived, out=maxima)
        row, column = lost.nonzero(as_tuple=True)
        if len(row):
            other = largest_other(self.values, self.largest, ball, source, row, column, limit=self.limit)
            maxima[row, column] = torch.maximum(other, arrived[row, column])
        # most maxima do not depend on one sender, and then nothing changes; a target itself is added or removed
        return maxima, (maxima != self.largest.value[ball.node]).any(dim=1)

    def _fused(self, changed: Tensor | None, rings: Rings, inner: int, outer: int) -> tuple[Tensor, Tensor]:
        """The same in one pass on a GPU."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        table = None if changed is None else changed.reshape(len(changed), -1)
        kind = torch.zeros_like(source.node, dtype=torch.int32)
        kind[source.centre] = 2 - rings.removes.to(torch.int32)
        return toggled_maxima(
            self.values,
            table,
            self.largest.value,
            self.largest.sender,
            self.largest.graph,
            paths,
            node=ball.node,
            source_node=source.node,
            kind=kind,
        )

    def _loops(self, table: Tensor, index: Tensor, source: Ball, paths: Paths, arrived: Tensor, left: Tensor) -> None:
        """A node with a self-loop is its own sender."""
        looped = (self.largest.graph.loops[source.node] > 0).nonzero().squeeze(1)
        if len(looped):
            row = paths.inside[looped]
            arrived[row] = torch.maximum(arrived[row], table[index[looped]])
            left[row] = torch.maximum(left[row], self.values[source.node[looped]])


def _targets(source: Ball, rings: Rings) -> tuple[Tensor, Tensor]:
    """Bool [inner rows], twice: targets that are removed, and targets that are added."""
    gone = torch.zeros_like(source.node, dtype=torch.bool)
    gone[source.centre] = rings.removes
    new = torch.zeros_like(gone)
    new[source.centre] = ~rings.removes
    return gone, new
