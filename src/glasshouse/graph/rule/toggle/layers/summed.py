"""Layers that add up messages (GCN, SGC, GIN, GraphSAGE-mean): a toggle adds the difference of the changed messages.

A row is ``c_x * (sum over w of k_w y_w + self_x k_x y_x) + rest_x``, where y is the projected input, c and k depend on
degrees alone, and the rest is not part of the sum (bias, root weight).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings
from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.fused.sums import message_gains, summed_rows
from glasshouse.graph.rule.toggle.layers.base import Cost, Toggled, project, under_every_mask
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import bag_sum

__all__ = ["Normalisation", "Summed"]

Normalisation = Literal["symmetric", "mean", "none"]
Finish = Callable[[Tensor], Tensor]


def _row_scale(degree: Tensor, loops: Tensor, normalisation: Normalisation) -> Tensor:
    """C of each row; for the symmetric normalisation it is also k, the scale of a sender's messages."""
    if normalisation == "symmetric":
        return (1 + degree).rsqrt()
    return 1 / (degree + loops).clamp(min=1) if normalisation == "mean" else torch.ones_like(degree)


@dataclass(frozen=True, kw_only=True)
class Summed:
    """A convolution that sums messages.

    Args:
        weight: map from inputs to messages, [models, width, out]; None when messages are the inputs themselves.
        root: map from a node's own input to its output, outside the sum, [models, width, out], or None.
        bias: [models, out] or None.
        normalisation: ``"symmetric"`` divides by both ends' root degrees and adds a self-loop, ``"mean"`` by the
            number of messages, ``"none"`` by nothing.
        finish: applied to each finished row [rows, models, out], such as GIN's perceptron; None for nothing.
        models: how many models are stacked.
        width: width of the sums.

    Example:
        >>> weight = torch.ones(2, 3, 4)
        >>> Summed(weight=weight, root=None, bias=None, normalisation="none", models=2, width=4).divides_by_degree
        False
    """

    weight: Tensor | None
    root: Tensor | None
    bias: Tensor | None
    normalisation: Normalisation
    models: int
    width: int
    finish: Finish | None = None
    item: int = 4  # bytes of one value

    @classmethod
    def of(cls, *, weight: Tensor, bias: Tensor | None, root: Tensor | None = None, **options: Any) -> Summed:
        """A layer with a weight, from which the number of models and the width are read."""
        models, _, width = weight.shape
        item = weight.element_size()
        return cls(weight=weight, root=root, bias=bias, models=models, width=width, item=item, **options)

    @property
    def counts_senders(self) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        return self.normalisation != "none"

    @property
    def divides_by_degree(self) -> bool:
        """Whether a sender's degree enters its messages."""
        return self.normalisation == "symmetric"

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        size = self.models * self.width * self.item
        fused = self.weight is not None and jit.usable(self.weight)  # kernels write rows and changes of messages alone
        return Cost(node=(3 + (self.root is not None)) * size, row=(2 if fused else 4) * size, path=32)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptSum, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        nodes = len(graph.members)
        messages = inputs if self.weight is None else project(inputs, self.weight)
        models, width = messages.shape[1:]
        rest = None if self.root is None else project(inputs, self.root)
        if self.bias is not None:
            rest = self.bias.unsqueeze(0) if rest is None else rest + self.bias
        if rest is None:
            rest = messages.new_zeros(1, models, width)
        per_node = len(rest) > 1 or graph.size == 1
        if per_node:
            rest = under_every_mask(rest, graph)
        # messages, sums and rest share one table, so that one gather-and-sum makes a finished row of the first layer
        table = messages.new_empty(2 * nodes + len(rest), models * width)
        table[:nodes] = under_every_mask(messages.reshape(-1, models * width), graph)
        table[2 * nodes :] = rest.reshape(-1, models * width)
        scale = _row_scale(graph.degree, graph.loops, self.normalisation)
        sent = scale if self.divides_by_degree else torch.ones_like(scale)
        loops = torch.ones_like(graph.loops) if self.divides_by_degree else graph.loops
        sources = graph.sources
        table[nodes : 2 * nodes] = bag_sum(
            table[:nodes], sources.other, sources.start, sources.weight * sent[sources.other]
        )
        if bool(loops.any()):
            table[nodes : 2 * nodes].addcmul_((loops * sent).unsqueeze(1), table[:nodes])
        kept = KeptSum(layer=self, graph=graph, table=table, scale=scale, sent=sent, loops=loops, per_node=per_node)
        rows = table[nodes : 2 * nodes] * scale.unsqueeze(1) + table[2 * nodes :]
        return kept, kept.finish(rows)


@dataclass(frozen=True, kw_only=True)
class KeptSum:
    """A summed layer's state; the table has messages [N], sums [N] and rest [N or 1], each models * width."""

    layer: Summed
    graph: MaskedGraph
    table: Tensor
    scale: Tensor  # [N], c
    sent: Tensor  # [N], k
    loops: Tensor  # [N], how often a node's own message enters its sum
    per_node: bool  # whether each node has its own rest

    def finish(self, rows: Tensor) -> Tensor:
        """Outputs [rows, models, out] of finished sums [rows, models * width]."""
        shaped = rows.view(len(rows), self.layer.models, self.layer.width)
        return shaped if self.layer.finish is None else self.layer.finish(shaped)

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`."""
        ball = rings.balls[outer]
        degree = self.graph.degree[ball.node] + ball.degree_change
        scale = _row_scale(degree, self.graph.loops[ball.node], self.layer.normalisation)  # [rows], c after the toggle
        rows = (
            self._same_messages(rings, inner, outer, scale)
            if changed is None
            else self._new_messages(changed, rings, inner, outer, scale)
        )
        return Toggled(self.finish(rows))

    def _sent_after(self, rings: Rings, inner: int) -> Tensor:
        """K of the inner ball's rows after the toggle."""
        ball = rings.balls[inner]
        if not self.layer.divides_by_degree:
            return self.sent[ball.node]
        return _row_scale(self.graph.degree[ball.node] + ball.degree_change, ball.degree_change, "symmetric")

    def _same_messages(self, rings: Rings, inner: int, outer: int, scale: Tensor) -> Tensor:
        """First layer: only the weights of the messages change, so rows are weighted sums of the table."""
        nodes, ball, source = len(self.graph.members), rings.balls[outer], rings.balls[inner]
        paths = rings.paths(inner, outer)
        own = self._sent_after(rings, inner) - self.sent[source.node]
        gain = own.clone()
        gain[source.centre] = self.sent[rings.targets] * (1 - 2 * rings.removes.to(own.dtype))
        if jit.usable(self.table):
            return summed_rows(
                self.table,
                paths,
                nodes=nodes,
                node=ball.node,
                scale=scale,
                gain=None,
                source=source.node[paths.source],
                weight=paths.weight * gain[paths.source],
                own=own,
                correction=own,
                root=None,
            )
        # each row: its kept sum, its rest, then its paths
        lead = 2 * torch.arange(len(ball.node), device=ball.node.device)
        receiver = paths.receiver
        place = torch.arange(len(receiver), device=receiver.device) + 2 * receiver + 2
        index = ball.node.new_empty(len(receiver) + 2 * len(ball.node))
        weight = scale.new_ones(len(index))
        first = paths.start[:-1] + lead
        index[first] = ball.node + nodes
        weight[first] = scale
        index[first + 1] = ball.node + 2 * nodes if self.per_node else 2 * nodes
        index[place] = source.node[paths.source]
        weight[place] = paths.weight * gain[paths.source] * scale[receiver]
        start = torch.cat([first, first.new_tensor([len(index)])])
        rows = bag_sum(self.table, index, start, weight)
        if self.layer.divides_by_degree:  # a node whose degree changed also has a new weight for its own message
            weight = scale[paths.inside] * own
            rows.index_add_(0, paths.inside, self.table[source.node] * weight.unsqueeze(1))
        return rows

    def _new_messages(self, changed: Tensor, rings: Rings, inner: int, outer: int, scale: Tensor) -> Tensor:
        """Later layers: kept sum plus the differences of the changed messages."""
        nodes, width = len(self.graph.members), self.table.shape[1]
        ball, source = rings.balls[outer], rings.balls[inner]
        paths = rings.paths(inner, outer)
        fresh = changed if self.layer.weight is None else project(changed, self.layer.weight)
        if jit.usable(self.table):
            return self._fused_messages(changed, fresh, rings, inner, outer, scale)
        fresh = fresh.reshape(-1, width) * self._sent_after(rings, inner).unsqueeze(1)
        old = self.table[source.node].mul_(self.sent[source.node].unsqueeze(1))
        gain = fresh - old
        own = gain * self.loops[source.node].unsqueeze(1)
        centre = source.centre  # the target's messages appear or vanish as a whole
        gain[centre] = torch.where(rings.removes.unsqueeze(1), -old[centre], fresh[centre])
        rows = bag_sum(gain, paths.source, paths.start, paths.weight)
        rows += self.table[nodes : 2 * nodes][ball.node]
        rows.index_add_(0, paths.inside, own)
        rows *= scale.unsqueeze(1)
        rest = self.table[2 * nodes :][ball.node] if self.per_node else self.table[2 * nodes :]
        root = self._new_rest(changed)
        if root is not None:
            rest[paths.inside] = root
        return rows.add_(rest)

    def _new_rest(self, changed: Tensor) -> Tensor | None:
        """The rest of rows with new inputs [rows, models, width], if it depends on them: [rows, models * width]."""
        if self.layer.root is None:
            return None
        own = project(changed, self.layer.root)
        own = own if self.layer.bias is None else own + self.layer.bias
        return own.reshape(-1, self.table.shape[1])

    def _fused_messages(
        self, changed: Tensor, fresh: Tensor, rings: Rings, inner: int, outer: int, scale: Tensor
    ) -> Tensor:
        """The same as the twin above, in two passes on a GPU."""
        source, removes = rings.balls[inner], rings.removes
        old, new = self.sent[source.node], self._sent_after(rings, inner)
        loops, centre = self.loops[source.node], source.centre
        correction = torch.zeros_like(loops)
        correction[centre] = -(loops * old)[centre]  # its message to others is new as a whole, the one to itself not
        plus, minus = new.clone(), old.clone()
        plus[centre] = torch.where(removes, 0, plus[centre])
        minus[centre] = torch.where(removes, minus[centre], 0)
        paths = rings.paths(inner, outer)
        return summed_rows(
            self.table,
            paths,
            nodes=len(self.graph.members),
            node=rings.balls[outer].node,
            scale=scale,
            gain=message_gains(fresh, self.table, source.node, plus=plus, minus=minus),
            source=paths.source,
            weight=paths.weight,
            own=loops,
            correction=correction,
            root=self._new_rest(changed),
        )
