"""Layers that add up messages (GCN, SGC, GIN, GraphSAGE-mean): a toggle adds the difference of the changed messages.

A row is ``c_x * (sum over w of a_wx k_w y_w + self_x k_x y_x) + rest_x``, where y is the projected input, a is the
weight of an edge, c and k depend on degrees alone, and the rest is not part of the sum (bias, root weight).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from glasshouse.graph.layers.layer_type import Loops, Normalisation
from glasshouse.graph.programs.rows import project
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.balls import Ball, Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph, PairWeights
from glasshouse.graph.rule.incremental.layer import Cost, Toggled, under_every_mask
from glasshouse.graph.rule.incremental.segments import bag_sum
from glasshouse.graph.rule.incremental.triton import summed_rows


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The factors of a sum of messages, before the graph is known."""

    # ``"symmetric"`` divides by the root degrees of both ends, ``"mean"`` by the number of messages, ``"none"`` by
    # nothing; ``"laplacian"`` is symmetric without any self-loop. The degree of a node is the sum of the weights of
    # its messages
    normalisation: Normalisation
    # ``"added"``: every node has one self-loop; ``"listed"``: those of the graph, as edges like all others
    loops: Loops = "listed"
    edge_weight: Tensor | None = None  # one weight per edge, [edges], or None if all are 1
    # weight of an added self-loop; a self-loop of the graph keeps its own. It is 1 without weights of edges
    fill: float = 1.0
    own: float = 1.0  # what the message of a self-loop is multiplied with; degrees count it once
    weighted_mean: bool = False  # whether the mean divides by the sum of the messages' weights, not by their number

    @property
    def counts_weights(self) -> bool:
        """Whether degrees are sums of weights."""
        return self.by_degree or self.weighted_mean

    @property
    def by_degree(self) -> bool:
        """Whether a sender's degree enters its messages."""
        return self.normalisation in ("symmetric", "laplacian")

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
        if self.normalisation == "laplacian":  # its largest entry is 1, which PyTorch Geometric scales it by
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
        if self.by_degree:
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
        """C of the rows of a ball after the toggle, [rows]."""
        change = ball.degree_change
        if self.pairs is not None and self.scaling.counts_weights:
            change = torch.zeros_like(change, dtype=torch.float64)
            row = ball.degree_change.nonzero().squeeze(1)  # the receivers of the targets
            target = ball.target[row]
            weight = self.pairs.between(step.targets[target] % self.graph.size, ball.node[row] % self.graph.size)
            change[row] = torch.where(step.removes[target], -weight, weight)
        return self.scaling._scale(self.degree[ball.node] + change, self.counted[ball.node]).to(self.scale.dtype)

    def sent_after(self, step: Step) -> Tensor:
        """K of the rows of the inner ball after the toggle, [rows]."""
        return self.after(step.source, step) if self.scaling.by_degree else self.sent[step.source.node]

    def along(self, step: Step) -> Tensor:
        """The weight of the message of each path, [paths]."""
        paths, size = step.paths, self.graph.size
        if self.pairs is None:
            return paths.weight
        return self.pairs.between(step.source.node[paths.source] % size, step.ball.node[paths.receiver] % size)


@dataclass(frozen=True)
class Summed:
    """A convolution that sums messages."""

    scaling: Scaling  # how strongly messages count
    weight: Tensor  # map from inputs to messages, [models, width, out]
    _: KW_ONLY
    # map from a node's own input to its output, outside the sum, [models, width, out], or None
    root: Tensor | None = None
    bias: Tensor | None = None  # [models, out] or None
    # whether it is a map; else messages are the inputs, and ``weight`` is some of them, [models, rows, width]
    maps: bool = True
    hops: int = 1

    @property
    def models(self) -> int:
        """How many models are stacked."""
        return len(self.weight)

    @property
    def width(self) -> int:
        """Columns of the sums, of one model."""
        return int(self.weight.shape[2])

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
        item = self.weight.element_size() if self.scaling.edge_weight is None else 8  # sums are then in float64
        size = self.models * self.width * item
        return Cost(node=(3 + (self.root is not None)) * size, row=4 * size, path=32)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptSum, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        scales, sources = self.scaling.under(graph), graph.sources
        messages = under_every_mask(self.messages(inputs), graph).to(scales.scale.dtype)
        sums = bag_sum(messages, sources.other, sources.start, scales.messages * scales.sent[sources.other])
        if bool(scales.loops.any()):
            sums.addcmul_((scales.loops * scales.sent).unsqueeze(1), messages)
        rest = self.rest(inputs)
        if rest is None:
            rest = messages.new_zeros(1, 1) if self.bias is None else self.bias.reshape(1, -1)
        else:
            rest = under_every_mask(rest, graph)
        rest = rest.to(messages.dtype)
        table = torch.cat([messages, sums, rest.expand(-1, messages.shape[1])])
        kept = KeptSum(layer=self, nodes=len(messages), table=table, scales=scales, dtype=inputs.dtype)
        return kept, kept.finish(sums * scales.scale.unsqueeze(1) + rest)

    def messages(self, inputs: Tensor) -> Tensor:
        """What rows with these inputs [rows, models or 1, width] send, [rows, models * width]."""
        return (project(inputs, self.weight) if self.maps else inputs.expand(-1, self.models, -1)).flatten(1)

    def rest(self, inputs: Tensor) -> Tensor | None:
        """What rows have outside the sum, if that depends on their inputs: [rows, models * width]."""
        if self.root is None:
            return None
        own = project(inputs, self.root)
        return (own if self.bias is None else own + self.bias).flatten(1)


@dataclass(frozen=True, kw_only=True)
class KeptSum:
    """A summed layer's state: messages [N], sums [N] and rest [N or 1] in one table [., models * width]."""

    layer: Summed
    nodes: int  # N
    table: Tensor
    scales: Scales
    dtype: torch.dtype  # of the outputs

    def finish(self, rows: Tensor) -> Tensor:
        """Outputs [rows, models, width] of finished sums [rows, models * width]."""
        return rows.view(len(rows), -1, self.layer.width).to(self.dtype)

    def toggle(self, changed: Tensor | None, step: Step) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`: kept sums plus the messages' differences."""
        layer, scales, ball, source, paths = self.layer, self.scales, step.ball, step.source, step.paths
        weight, scale = scales.along(step), scales.after(ball, step)
        fused = layer.scaling.edge_weight is None and triton.usable(self.table)  # sums with weights are in float64
        if changed is None and not fused:
            return Toggled(self.finish(self._same_messages(step, weight, scale)))
        kept = self.table[source.node]
        fresh = kept if changed is None else layer.messages(changed)
        fresh = fresh * scales.sent_after(step).unsqueeze(1)
        old = kept.mul_(scales.sent[source.node].unsqueeze(1))
        gain = fresh - old
        own = gain * scales.loops[source.node].unsqueeze(1)
        centre = source.centre  # the target's messages appear or vanish as a whole
        gain[centre] = torch.where(step.removes.unsqueeze(1), -old[centre], fresh[centre])
        sums, rest = self.table[self.nodes : 2 * self.nodes], self.table[2 * self.nodes :]
        rest = rest if len(rest) == 1 and layer.root is None else rest[ball.node]
        root = None if changed is None else layer.rest(changed)
        if root is not None:
            rest[paths.inside] = root.to(rest.dtype)
        if fused:
            return Toggled(self.finish(summed_rows(sums, gain, own, rest, step, weight=weight, scale=scale)))
        rows = bag_sum(gain, paths.source, paths.start, weight)
        rows += sums[ball.node]
        rows.index_add_(0, paths.inside, own)
        rows *= scale.unsqueeze(1)
        return Toggled(self.finish(rows.add_(rest)))

    def _same_messages(self, step: Step, along: Tensor, scale: Tensor) -> Tensor:
        """The first layer's rows, where only the weights of messages change: one gather and sum of the table."""
        scales, ball, source, paths = self.scales, step.ball, step.source, step.paths
        own = scales.sent_after(step) - scales.sent[source.node]
        gain = own.clone()
        gain[source.centre] = scales.sent[step.targets] * (1 - 2 * step.removes.to(own.dtype))
        # each row: its kept sum, its rest, then its paths
        rows, receiver = torch.arange(len(ball.node), device=ball.node.device), paths.receiver
        place = torch.arange(len(receiver), device=receiver.device) + 2 * receiver + 2
        index = ball.node.new_empty(len(receiver) + 2 * len(rows))
        weight = scale.new_ones(len(index))
        first = paths.start[:-1] + 2 * rows
        index[first], weight[first] = ball.node + self.nodes, scale
        index[first + 1] = 2 * self.nodes + (ball.node if len(self.table) > 2 * self.nodes + 1 else 0)
        index[place], weight[place] = source.node[paths.source], along * gain[paths.source] * scale[receiver]
        made = bag_sum(self.table, index, torch.cat([first, first.new_tensor([len(index)])]), weight)
        if self.layer.divides_by_degree:  # a node whose degree changed also has a new weight for its own message
            again = scale[paths.inside] * own * scales.loops[source.node]
            made.index_add_(0, paths.inside, self.table[source.node] * again.unsqueeze(1))
        return made
