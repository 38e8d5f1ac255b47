"""Layers that add up messages (GCN, SGC, GIN, GraphSAGE-mean): a toggle adds the difference of the changed messages.

A row is ``c_x * (sum over w of a_wx k_w y_w + self_x k_x y_x) + rest_x``, where y is the projected input, a is the
weight of an edge, c and k depend on degrees alone, and the rest is not part of the sum (bias, root weight).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings
from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.fused.sums import message_gains, summed_rows
from glasshouse.graph.rule.toggle.layers.base import Cost, Toggled, project, under_every_mask
from glasshouse.graph.rule.toggle.layers.scales import Loops, Normalisation, Scales, Scaling
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import bag_sum

__all__ = ["Summed"]


@dataclass(frozen=True, kw_only=True)
class Summed:
    """A convolution that sums messages.

    Args:
        weight: map from inputs to messages, [models, width, out]; None when messages are the inputs themselves.
        root: map from a node's own input to its output, outside the sum, [models, width, out], or None.
        bias: [models, out] or None.
        normalisation: see :class:`~glasshouse.graph.rule.toggle.layers.scales.Scaling`.
        models: how many models are stacked.
        width: width of the sums.
        loops: see ``Scaling``; by default the symmetric normalisation adds self-loops, and others use those listed.
        edge_weight: one weight per edge, [edges], or None.
        fill: weight of an added self-loop, if edges have weights.
        item: bytes of one value.
        hops: of one step.

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
    loops: Loops | None = None
    edge_weight: Tensor | None = None
    fill: float = 1.0
    item: int = 4
    hops: int = 1

    @classmethod
    def of(cls, *, weight: Tensor, bias: Tensor | None, root: Tensor | None = None, **options: Any) -> Summed:
        """A layer with a weight, from which the number of models and the width are read."""
        models, _, width = weight.shape
        item = weight.element_size()
        return cls(weight=weight, root=root, bias=bias, models=models, width=width, item=item, **options)

    @property
    def scaling(self) -> Scaling:
        """How strongly messages count."""
        symmetric = self.normalisation == "symmetric"
        return Scaling(
            normalisation=self.normalisation,
            loops=self.loops or ("added" if symmetric else "listed"),
            edge_weight=self.edge_weight,
            fill=self.fill,
        )

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
        size = self.models * self.width * (self.item if self.edge_weight is None else 8)  # weighted sums are float64
        fused = self.weight is not None and jit.usable(self.weight)  # kernels write rows and changes of messages alone
        fused = fused and self.edge_weight is None
        return Cost(node=(3 + (self.root is not None)) * size, row=(2 if fused else 4) * size, path=32)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptSum, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        nodes = len(graph.members)
        messages = inputs.expand(-1, self.models, -1) if self.weight is None else project(inputs, self.weight)
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
        scales = self.scaling.under(graph)
        table = scales.scale.new_empty(2 * nodes + len(rest), models * width)
        table[:nodes] = under_every_mask(messages.reshape(-1, models * width), graph)
        table[2 * nodes :] = rest.reshape(-1, models * width)
        sources = graph.sources
        table[nodes : 2 * nodes] = bag_sum(
            table[:nodes], sources.other, sources.start, scales.messages * scales.sent[sources.other]
        )
        if bool(scales.loops.any()):
            table[nodes : 2 * nodes].addcmul_((scales.loops * scales.sent).unsqueeze(1), table[:nodes])
        kept = KeptSum(layer=self, graph=graph, table=table, scales=scales, per_node=per_node, dtype=messages.dtype)
        rows = table[nodes : 2 * nodes] * scales.scale.unsqueeze(1) + table[2 * nodes :]
        return kept, kept.finish(rows)


@dataclass(frozen=True, kw_only=True)
class KeptSum:
    """A summed layer's state; the table has messages [N], sums [N] and rest [N or 1], each models * width."""

    layer: Summed
    graph: MaskedGraph
    table: Tensor
    scales: Scales
    per_node: bool  # whether each node has its own rest
    dtype: torch.dtype  # of the outputs

    @property
    def _fused(self) -> bool:
        """Whether kernels do the work; sums with weights of edges are in another type than the models' values."""
        return self.layer.edge_weight is None and jit.usable(self.table)

    def finish(self, rows: Tensor) -> Tensor:
        """Outputs [rows, models, width] of finished sums [rows, models * width]."""
        return rows.view(len(rows), -1, self.layer.width).to(self.dtype)

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`."""
        scale = self.scales.after(rings.balls[outer], rings)
        rows = (
            self._same_messages(rings, inner, outer, scale)
            if changed is None
            else self._new_messages(changed, rings, inner, outer, scale)
        )
        return Toggled(self.finish(rows))

    def _same_messages(self, rings: Rings, inner: int, outer: int, scale: Tensor) -> Tensor:
        """First layer: only the weights of the messages change, so rows are weighted sums of the table."""
        nodes, ball, source = len(self.graph.members), rings.balls[outer], rings.balls[inner]
        paths = rings.paths(inner, outer)
        own = self.scales.sent_after(source, rings) - self.scales.sent[source.node]
        gain = own.clone()
        gain[source.centre] = self.scales.sent[rings.targets] * (1 - 2 * rings.removes.to(own.dtype))
        along = self.scales.along(paths, source, ball)
        if self._fused:
            loops = own * self.scales.loops[source.node]
            return summed_rows(
                self.table,
                paths,
                nodes=nodes,
                node=ball.node,
                scale=scale,
                gain=None,
                source=source.node[paths.source],
                weight=along * gain[paths.source],
                own=loops,
                correction=loops,
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
        weight[place] = along * gain[paths.source] * scale[receiver]
        start = torch.cat([first, first.new_tensor([len(index)])])
        rows = bag_sum(self.table, index, start, weight)
        if self.layer.divides_by_degree:  # a node whose degree changed also has a new weight for its own message
            weight = scale[paths.inside] * own * self.scales.loops[source.node]
            rows.index_add_(0, paths.inside, self.table[source.node] * weight.unsqueeze(1))
        return rows

    def _new_messages(self, changed: Tensor, rings: Rings, inner: int, outer: int, scale: Tensor) -> Tensor:
        """Later layers: kept sum plus the differences of the changed messages."""
        nodes, width = len(self.graph.members), self.table.shape[1]
        ball, source = rings.balls[outer], rings.balls[inner]
        paths = rings.paths(inner, outer)
        fresh = changed if self.layer.weight is None else project(changed, self.layer.weight)
        if self._fused:
            return self._fused_messages(changed, fresh, rings, inner, outer, scale)
        fresh = fresh.reshape(-1, width) * self.scales.sent_after(source, rings).unsqueeze(1)
        old = self.table[source.node].mul_(self.scales.sent[source.node].unsqueeze(1))
        gain = fresh - old
        own = gain * self.scales.loops[source.node].unsqueeze(1)
        centre = source.centre  # the target's messages appear or vanish as a whole
        gain[centre] = torch.where(rings.removes.unsqueeze(1), -old[centre], fresh[centre])
        rows = bag_sum(gain, paths.source, paths.start, self.scales.along(paths, source, ball))
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
        return own.reshape(-1, self.table.shape[1]).to(self.table.dtype)

    def _fused_messages(
        self, changed: Tensor, fresh: Tensor, rings: Rings, inner: int, outer: int, scale: Tensor
    ) -> Tensor:
        """The same as the twin above, in two passes on a GPU."""
        source, removes = rings.balls[inner], rings.removes
        old, new = self.scales.sent[source.node], self.scales.sent_after(source, rings)
        loops, centre = self.scales.loops[source.node], source.centre
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
            weight=self.scales.along(paths, source, rings.balls[outer]),
            own=loops,
            correction=correction,
            root=self._new_rest(changed),
        )
