"""Layers that add up messages (GCN, SGC, GIN, GraphSAGE-mean): a toggle adds the difference of the changed messages.

A row is ``c_x * (sum over w of a_wx k_w y_w + self_x k_x y_x) + rest_x``, where y is the projected input, a is the
weight of an edge, c and k depend on degrees alone, and the rest is not part of the sum (bias, root weight).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from glasshouse.graph.programs.rows import project
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.balls import Ball, Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph, PairWeights
from glasshouse.graph.rule.incremental.layer import Cost, Layer, Toggled, under_every_mask
from glasshouse.graph.rule.incremental.segments import bag_sum
from glasshouse.graph.rule.incremental.triton_sum import message_gains, summed_rows

Normalisation = Literal["symmetric", "mean", "none"]
Loops = Literal["added", "listed", "dropped"]


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The factors of a sum of messages, before the graph is known.

    ``"symmetric"`` divides by the root degrees of both ends, ``"mean"`` by the number of messages, ``"none"`` by
    nothing. The degree of a node is the sum of the weights of its messages. Self-loops are ``"added"``: every node has
    one; ``"listed"``: those of the graph, as edges like all others; or ``"dropped"``.
    """

    normalisation: Normalisation = "none"
    loops: Loops = "listed"
    edge_weight: Tensor | None = None  # one weight per edge, [edges], or None if all are 1
    fill: float = 1.0  # of an added self-loop; one of the graph keeps its own weight. It is 1 without weights of edges
    own: float = 1.0  # what the message of a self-loop is multiplied with; degrees count it once
    weighted_mean: bool = False  # whether the mean divides by the sum of the messages' weights, not by their number

    @property
    def counts_weights(self) -> bool:
        """Whether degrees are sums of weights."""
        return self.by_degree or self.weighted_mean

    @property
    def by_degree(self) -> bool:
        """Whether a sender's degree enters its messages."""
        return self.normalisation == "symmetric"

    def under(self, graph: MaskedGraph) -> Scales:
        """The factors in a union of masks."""
        masks, degree = len(graph.members) // graph.size, graph.degree
        pairs = None if self.edge_weight is None else PairWeights.of(graph.copies, self.edge_weight)
        messages = graph.sources.weight
        if pairs is not None:
            receiver = torch.repeat_interleave(graph.sources.count, output_size=len(messages))
            weight = pairs.between(graph.sources.other % graph.size, receiver % graph.size)
            messages = weight
            if self.counts_weights:
                degree = weight.new_zeros(len(degree)).index_add_(0, receiver, weight)
        if self.loops == "dropped":
            loops = torch.zeros_like(graph.loops)
        elif self.loops == "added":
            loops = torch.ones_like(graph.loops) if pairs is None else pairs.loops(none=self.fill).repeat(masks)
        else:
            loops = graph.loops if pairs is None else pairs.loops().repeat(masks)
        counted = loops if self.counts_weights or self.loops == "added" else graph.loops
        scale = self._scale(degree, counted).to(messages.dtype)
        return Scales(
            scaling=self,
            graph=graph,
            pairs=pairs,
            messages=messages,
            degree=degree,
            counted=counted,
            loops=self.own * loops.to(scale.dtype),
            scale=scale,
            sent=scale if self.by_degree else torch.ones_like(scale),
        )

    def _scale(self, degree: Tensor, loops: Tensor) -> Tensor:
        """C of each row; for the symmetric normalisation it is also k, the scale of a sender's messages."""
        if self.normalisation == "symmetric":
            total = degree + loops
            return total.rsqrt().masked_fill_(total == 0, 0)
        return 1 / (degree + loops).clamp(min=1) if self.normalisation == "mean" else torch.ones_like(degree)


@dataclass(frozen=True, kw_only=True)
class Scales:
    """The factors in a union of masks, and after toggles; in float64 if edges have weights.

    Weights may be of very different size. A sum from which its largest message is subtracted then has no digits left in
    float32.
    """

    scaling: Scaling
    graph: MaskedGraph
    pairs: PairWeights | None
    messages: Tensor  # [entries of the lists of senders], weight of each message
    degree: Tensor  # [N], without self-loops
    counted: Tensor  # [N], what self-loops add to the degree
    loops: Tensor  # [N], how strongly a node's own message enters its sum
    scale: Tensor  # [N], c
    sent: Tensor  # [N], k

    def after(self, ball: Ball, step: Step) -> Tensor:
        """C of the rows of a step's ball after the toggle, [rows]."""
        change = ball.degree_change
        if self.pairs is not None and self.scaling.counts_weights:
            change = torch.zeros_like(change, dtype=torch.float64)
            row = ball.degree_change.nonzero().squeeze(1)  # the receivers of the targets
            target = ball.target[row]
            weight = self.pairs.between(step.rings.targets[target] % self.graph.size, ball.node[row] % self.graph.size)
            change[row] = torch.where(step.rings.removes[target], -weight, weight)
        return self.scaling._scale(self.degree[ball.node] + change, self.counted[ball.node]).to(self.scale.dtype)

    def sent_after(self, step: Step) -> Tensor:
        """K of the rows of the source ball after the toggle, [rows]."""
        return self.after(step.source, step) if self.scaling.by_degree else self.sent[step.source.node]

    def along(self, step: Step) -> Tensor:
        """The weight of the message of each path, [paths]."""
        paths, size = step.paths, self.graph.size
        if self.pairs is None:
            return paths.weight
        return self.pairs.between(step.source.node[paths.source] % size, step.ball.node[paths.receiver] % size)


@dataclass(frozen=True, kw_only=True)
class Summed(Layer):
    """A convolution that sums messages."""

    weight: Tensor | None  # from inputs to messages, [models, width, out]; None when messages are the inputs themselves
    sample: Tensor  # the weight, or a few inputs [rows, models or 1, width]
    root: Tensor | None = None  # from a node's own input to its output, outside the sum, [models, width, out]
    bias: Tensor | None = None  # [models, out]
    scaling: Scaling = Scaling()

    @property
    def models(self) -> int:
        """How many are stacked; 1 if all of them make the same."""
        stacked = self.bias if self.weight is None else self.weight
        return int(self.sample.shape[1]) if stacked is None else len(stacked)

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return int(self.sample.shape[2])

    @property
    def counts_senders(self) -> bool:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        return self.scaling.normalisation != "none"

    @property
    def divides_by_degree(self) -> bool:
        """Whether a sender's degree enters its messages."""
        return self.scaling.by_degree

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        plain = self.scaling.edge_weight is None
        size = self.models * self.width * (self.sample.element_size() if plain else 8)  # weighted sums are float64
        # kernels write rows and changes of messages alone
        fused = plain and self.weight is not None and triton.usable(self.weight)
        return Cost(node=(3 + (self.root is not None)) * size, row=(2 if fused else 4) * size, path=32)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptSum, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
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
        table[:nodes].view(-1, len(messages), models * width)[:] = messages.reshape(-1, models * width)  # for each mask
        table[2 * nodes :] = rest.reshape(-1, models * width)
        sources = graph.sources
        table[nodes : 2 * nodes] = bag_sum(
            table[:nodes], sources.other, sources.start, scales.messages * scales.sent[sources.other]
        )
        if bool(scales.loops.any()):
            table[nodes : 2 * nodes].addcmul_((scales.loops * scales.sent).unsqueeze(1), table[:nodes])
        kept = KeptSum(layer=self, graph=graph, table=table, scales=scales, per_node=per_node, dtype=messages.dtype)
        rows = (table[nodes : 2 * nodes] * scales.scale.unsqueeze(1)).add_(table[2 * nodes :])
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
        return self.layer.scaling.edge_weight is None and triton.usable(self.table)

    def finish(self, rows: Tensor) -> Tensor:
        """Outputs [rows, models, width] of finished sums [rows, models * width]."""
        return rows.view(len(rows), -1, self.layer.width).to(self.dtype)

    def toggle(self, changed: Tensor | None, step: Step) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`."""
        scale = self.scales.after(step.ball, step)
        rows = self._same_messages(step, scale) if changed is None else self._new_messages(changed, step, scale)
        return Toggled(self.finish(rows))

    def _same_messages(self, step: Step, scale: Tensor) -> Tensor:
        """First layer: only the weights of the messages change, so rows are weighted sums of the table."""
        nodes, ball, source, paths = len(self.graph.members), step.ball, step.source, step.paths
        own = self.scales.sent_after(step) - self.scales.sent[source.node]
        gain = own.clone()
        gain[source.centre] = self.scales.sent[step.rings.targets] * (1 - 2 * step.rings.removes.to(own.dtype))
        along = self.scales.along(step)
        if self._fused:
            loops = own * self.scales.loops[source.node]
            sent = {"source": source.node[paths.source], "weight": along * gain[paths.source]}
            return summed_rows(self.table, step, nodes=nodes, scale=scale, **sent, own=loops, correction=loops)
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
            rows.index_add_(0, paths.inside, self.table.index_select(0, source.node).mul_(weight.unsqueeze(1)))
        return rows

    def _new_messages(self, changed: Tensor, step: Step, scale: Tensor) -> Tensor:
        """Later layers: kept sum plus the differences of the changed messages."""
        nodes, width = len(self.graph.members), self.table.shape[1]
        ball, source, paths = step.ball, step.source, step.paths
        fresh = changed if self.layer.weight is None else project(changed, self.layer.weight)
        if self._fused:
            return self._fused_messages(changed, fresh, step, scale)
        fresh = fresh.reshape(-1, width) * self.scales.sent_after(step).unsqueeze(1)
        # rows by `index_select`: on the CPU it takes a quarter of the time of an index
        old = self.table.index_select(0, source.node).mul_(self.scales.sent[source.node].unsqueeze(1))
        gain = fresh - old
        own = gain * self.scales.loops[source.node].unsqueeze(1)
        centre = source.centre  # the target's messages appear or vanish as a whole
        gain[centre] = torch.where(step.rings.removes.unsqueeze(1), -old[centre], fresh[centre])
        rows = bag_sum(gain, paths.source, paths.start, self.scales.along(step))
        rows += self.table.index_select(0, ball.node + nodes)
        if step.inner == step.outer:  # each row is inside, in this order
            rows += own
        else:
            rows.index_add_(0, paths.inside, own)
        rows *= scale.unsqueeze(1)
        rest = self.table.index_select(0, ball.node + 2 * nodes) if self.per_node else self.table[2 * nodes :]
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

    def _fused_messages(self, changed: Tensor, fresh: Tensor, step: Step, scale: Tensor) -> Tensor:
        """The same as the twin above, in two passes on a GPU."""
        source, removes = step.source, step.rings.removes
        old, new = self.scales.sent[source.node], self.scales.sent_after(step)
        loops, centre = self.scales.loops[source.node], source.centre
        correction = torch.zeros_like(loops)
        correction[centre] = -(loops * old)[centre]  # its message to others is new as a whole, the one to itself not
        plus, minus = new.clone(), old.clone()
        plus[centre] = torch.where(removes, 0, plus[centre])
        minus[centre] = torch.where(removes, minus[centre], 0)
        return summed_rows(
            self.table,
            step,
            nodes=len(self.graph.members),
            scale=scale,
            gain=message_gains(fresh, self.table, source.node, plus=plus, minus=minus),
            source=step.paths.source,
            weight=self.scales.along(step),
            own=loops,
            correction=correction,
            root=self._new_rest(changed),
        )
