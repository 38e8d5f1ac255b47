"""Graph attention: a softmax over senders is a numerator and a denominator, and a toggle updates both sums.

Scores are sums of a sender's and a receiver's part (GAT), or made for each pair of nodes (GATv2, the transformer, and
GAT with features of edges).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.balls import Ball, Paths, Rings
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.layer import (
    Cost,
    EdgeValues,
    Messages,
    Toggled,
    messages_of,
    project,
    summed_features,
    under_every_mask,
)
from glasshouse.graph.rule.incremental.segments import expand, lookup, segment_sum, slices_within, starts_of
from glasshouse.graph.rule.incremental.triton_attention import Scored, attended, attended_afresh, attended_update

_KEPT_SHARE = 0.25  # a denominator that falls below this share of itself has lost digits: the row is summed again
_HIGHEST = 20.0  # also a row with a new sender this far above the old maximum, before exponentials overflow


@dataclass(frozen=True, kw_only=True)
class Attention:
    """A GAT convolution with a self-loop at every node.

    Args:
        weight: [models, width, heads * channels].
        source: attention vector of senders, [models, heads, channels].
        receiver: attention vector of receivers, [models, heads, channels].
        bias: [models, out] or None.
        slope: of the leaky ReLU below zero.
        concat: heads side by side, else their mean.

    Example:
        >>> vector = torch.ones(2, 4, 8)
        >>> weight = torch.ones(2, 3, 32)
        >>> Attention(weight=weight, source=vector, receiver=vector, bias=None, slope=0.2, concat=True).heads
        4
    """

    weight: Tensor
    source: Tensor
    receiver: Tensor
    bias: Tensor | None
    slope: float
    concat: bool
    divides_by_degree: bool = False
    counts_senders: bool = False
    hops: int = 1

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        _, heads, channels = self.source.shape
        return int(heads * channels if self.concat else channels)

    @property
    def heads(self) -> int:
        """Heads of one model."""
        return int(self.source.shape[1])

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        wide = self.weight.shape[0] * self.weight.shape[2] * self.weight.element_size()
        narrow = self.weight.shape[0] * self.heads * self.weight.element_size()
        if triton.usable(self.weight):  # kernels store nothing for a path
            return Cost(node=3 * wide + 4 * narrow, row=4 * wide + 4 * narrow, path=32)
        return Cost(node=3 * wide + 4 * narrow, row=4 * wide + 4 * narrow, path=3 * wide + 6 * narrow + 64)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptAttention, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        values, sent, received = (under_every_mask(part, graph) for part in self.scores(inputs))
        if triton.usable(values):
            scored = Scored(values=values, sent=sent, received=received)
            highest, below, above = attended(scored, graph, slope=self.slope)
        else:
            highest, below, above = self._sums(values, sent, received, graph, limit)
        kept = KeptAttention(
            layer=self,
            graph=graph,
            values=values,
            sent=sent,
            received=received,
            highest=highest,
            below=below,
            above=above,
            limit=limit,
        )
        return kept, self.combine(above, below)

    def _sums(
        self, values: Tensor, sent: Tensor, received: Tensor, graph: MaskedGraph, limit: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Largest scores, denominators and numerators of all nodes."""
        highest, below, above = torch.empty_like(sent), torch.empty_like(sent), torch.empty_like(values)
        sources = graph.sources
        for part in slices_within((sources.count + 1) * self.cost(shared=False).path, limit):
            rows = torch.arange(part.start, part.stop, device=values.device)
            entry, owner = expand(sources.start[rows], sources.count[rows])
            other = sources.other[entry]
            softmax = _Softmax(received=received[rows], slope=self.slope)
            softmax.add(values[other], sent[other], owner, sources.weight[entry])
            softmax.add(values[rows], sent[rows], torch.arange(len(rows), device=rows.device), None)
            highest[part], below[part], above[part] = softmax.sums()
        return highest, below, above

    def scores(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values [rows, models * heads, channels] and the scores of senders and receivers [rows, models * heads]."""
        models, heads, channels = self.source.shape
        values = project(inputs, self.weight).reshape(-1, models, heads, channels)
        sent, received = (values * self.source).sum(-1), (values * self.receiver).sum(-1)
        return values.flatten(1, 2), sent.flatten(1), received.flatten(1)

    def combine(self, above: Tensor, below: Tensor) -> Tensor:
        """Outputs [rows, models, out] from numerators and denominators."""
        return self.finish(above / below.unsqueeze(2))

    def finish(self, rows: Tensor) -> Tensor:
        """Outputs [rows, models, out] from each head's mean [rows, models * heads, channels]."""
        models, heads, channels = self.source.shape
        rows = rows.view(-1, models, heads, channels)
        rows = rows.reshape(-1, models, heads * channels) if self.concat else rows.mean(2)
        return rows if self.bias is None else rows + self.bias


class _Softmax:
    """Collects senders of some rows, then sums them relative to the largest score, so that nothing overflows."""

    def __init__(self, *, received: Tensor, slope: float) -> None:
        self.received, self.slope = received, slope  # scores of the receiving rows [rows, models * heads]
        self.parts: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []

    def add(self, values: Tensor, sent: Tensor, owner: Tensor, weight: Tensor | None) -> None:
        """Add senders' values and scores, the row of each (ascending), and how often each is counted."""
        score = torch.nn.functional.leaky_relu(sent + self.received[owner], self.slope)
        self.parts.append((values, score, owner, weight))

    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Largest score and denominator [rows, models * heads] and numerator [rows, models * heads, channels]."""
        rows = len(self.received)
        highest = torch.full_like(self.received, -torch.inf)
        for _, score, owner, _ in self.parts:
            highest.scatter_reduce_(0, owner.unsqueeze(1).expand_as(score), score, "amax")
        below = torch.zeros_like(self.received)
        values = self.parts[0][0]  # [senders, models * heads, channels]
        above = values.new_zeros(rows, values.shape[1] * values.shape[2])
        for values, score, owner, weight in self.parts:
            share = (score - highest[owner]).exp_()
            if weight is not None:
                share *= weight.unsqueeze(1)
            start = starts_of(owner, rows)
            below += segment_sum(share, start)
            above += segment_sum((values * share.unsqueeze(2)).flatten(1), start)
        return highest, below, above.view(rows, *values.shape[1:])


@dataclass(frozen=True, kw_only=True)
class KeptAttention:
    """An attention layer's state: scores are [N, models * heads], values [N, models * heads, channels]."""

    layer: Attention
    graph: MaskedGraph
    values: Tensor
    sent: Tensor
    received: Tensor
    highest: Tensor  # largest score among a node's senders
    below: Tensor  # denominator
    above: Tensor  # numerator
    limit: int  # bytes that temporary arrays may take

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`."""
        if triton.usable(self.values):
            return Toggled(self._fused(changed, rings, inner, outer))
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        afresh = torch.zeros_like(ball.node, dtype=torch.bool)
        if changed is None:
            values, sent, received = self.values[source.node], self.sent[source.node], self.received[source.node]
        else:
            values, sent, received = self.layer.scores(changed)
            afresh[paths.inside] = True  # its own score changed, and therefore every weight
        news = _News(values=values, sent=sent, received=received, source=source, paths=paths, rings=rings)
        above, below, spoilt = self._update(news, ball, afresh)
        rows = (afresh | spoilt).nonzero().squeeze(1)
        senders = self.graph.sources.count[ball.node[rows]] + paths.start.diff()[rows] + 1
        for part in slices_within(senders * self.layer.cost(shared=False).path, self.limit):  # a hub has many
            some = rows[part]
            above[some], below[some] = self._sum_afresh(news, ball, some)
        return Toggled(self.layer.combine(above, below))

    def _fused(self, changed: Tensor | None, rings: Rings, inner: int, outer: int) -> Tensor:
        """The same in two passes on a GPU: rows whose messages are exchanged, then those that are summed afresh."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        kept = Scored(values=self.values, sent=self.sent, received=self.received)
        news = None
        if changed is not None:
            values, sent, received = self.layer.scores(changed)
            news = Scored(values=values.contiguous(), sent=sent, received=received)
        kind = torch.zeros_like(source.node, dtype=torch.int32)
        kind[source.centre] = 2 - rings.removes.to(torch.int32)
        place = torch.full_like(ball.node, -1)
        place[paths.inside] = torch.arange(len(source.node), device=place.device)
        slope = self.layer.slope
        rows, spoilt = attended_update(
            kept,
            (self.highest, self.below, self.above),
            news,
            ball,
            source,
            paths,
            inner=place,
            kind=kind,
            slope=slope,
            limit=_HIGHEST,
            share=_KEPT_SHARE,
        )
        again = spoilt.nonzero().squeeze(1)
        attended_afresh(rows, again, kept, news, ball, source, paths, self.graph, inner=place, kind=kind, slope=slope)
        return self.layer.finish(rows.view(len(rows), *self.values.shape[1:]))

    def _update(self, news: _News, ball: Ball, skip: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Numerators and denominators after the exchange of changed messages, and the rows where that lost digits."""
        paths, slope = news.paths, self.layer.slope
        receiver = paths.receiver
        wanted = (~skip[receiver]).nonzero().squeeze(1)
        receiver, sender, weight = receiver[wanted], paths.source[wanted], paths.weight[wanted].unsqueeze(1)
        start = starts_of(receiver, len(ball.node))
        node = ball.node[receiver]
        score, highest = self.received[node], self.highest[node]
        leaky = torch.nn.functional.leaky_relu
        new = leaky(news.sent[sender] + score, slope) - highest
        spoilt = torch.zeros_like(skip)
        spoilt[receiver[(new > _HIGHEST).any(1)]] = True
        new = new.clamp_(max=_HIGHEST).exp_().mul_(weight * news.arrives[sender].unsqueeze(1))
        old_node = news.source.node[sender]
        old = leaky(self.sent[old_node] + score, slope).sub_(highest).exp_()
        old *= weight * news.leaves[sender].unsqueeze(1)
        before = self.below[ball.node]
        below = before + segment_sum(new - old, start)
        spoilt |= (below < _KEPT_SHARE * before).any(1)
        change = (news.values[sender] * new.unsqueeze(2)).sub_(self.values[old_node] * old.unsqueeze(2))
        above = self.above[ball.node] + segment_sum(change.flatten(1), start).view(len(ball.node), *change.shape[1:])
        return above, below, spoilt

    def _sum_afresh(self, news: _News, ball: Ball, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Numerators and denominators of some rows of the ball from all their senders."""
        source, paths, sources = news.source, news.paths, self.graph.sources
        inner_row, within = lookup(source.keys, ball.keys[rows])
        node = ball.node[rows]
        itself = torch.arange(len(rows), device=rows.device)
        own = torch.where(within, inner_row, 0)
        received = torch.where(within.unsqueeze(1), news.received[own], self.received[node])
        softmax = _Softmax(received=received, slope=self.layer.slope)
        # senders as they were
        entry, owner = expand(sources.start[node], sources.count[node])
        other = sources.other[entry]
        _, moved = lookup(source.keys, ball.target[rows][owner] * len(self.graph.members) + other)
        still = (~moved).nonzero().squeeze(1)
        entry, owner, other = entry[still], owner[still], other[still]
        softmax.add(self.values[other], self.sent[other], owner, sources.weight[entry])
        # changed senders
        entry, owner = expand(paths.start[rows], paths.start[rows + 1] - paths.start[rows])
        here = (news.arrives[paths.source[entry]] > 0).nonzero().squeeze(1)
        entry, owner = entry[here], owner[here]
        sender = paths.source[entry]
        softmax.add(news.values[sender], news.sent[sender], owner, paths.weight[entry])
        # the row itself
        values = torch.where(within.view(-1, 1, 1), news.values[own], self.values[node])
        sent = torch.where(within.unsqueeze(1), news.sent[own], self.sent[node])
        softmax.add(values, sent, itself, None)
        _, below, above = softmax.sums()
        return above, below


class _News:
    """New values and scores of the inner ball's rows, and which of their messages arrive or leave (1 or 0)."""

    def __init__(
        self, *, values: Tensor, sent: Tensor, received: Tensor, source: Ball, paths: Paths, rings: Rings
    ) -> None:
        self.values, self.sent, self.received, self.source, self.paths = values, sent, received, source, paths
        self.arrives, self.leaves = torch.ones_like(sent[:, 0]), torch.ones_like(sent[:, 0])
        self.arrives[source.centre] = (~rings.removes).to(sent.dtype)  # a removed target no longer sends
        self.leaves[source.centre] = rings.removes.to(sent.dtype)  # an added one did not send before


@dataclass(frozen=True, kw_only=True)
class Affine:
    """A linear map of each model.

    Example:
        >>> Affine(weight=torch.ones(2, 3, 4), bias=None)(torch.ones(5, 1, 3)).shape
        torch.Size([5, 2, 4])
    """

    weight: Tensor  # [models, width, out]
    bias: Tensor | None  # [models, out]

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows [rows, models or 1, width] to [rows, models, out]."""
        made = project(rows, self.weight)
        return made if self.bias is None else made + self.bias


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What rows show to receivers, the values that they send, and what they ask senders for.

    All are [rows, models, heads, ...]; values and what is shown may be one tensor.
    """

    shown: Tensor
    sent: Tensor
    asked: Tensor

    def each(self, function: Callable[[Tensor], Tensor]) -> Parts:
        """The result of a function of each part."""
        shown = function(self.shown)
        sent = shown if self.sent is self.shown else function(self.sent)
        return Parts(shown=shown, sent=sent, asked=function(self.asked))

    def at(self, rows: Tensor) -> Parts:
        """Some rows."""
        return self.each(lambda part: part[rows])

    def where(self, here: Tensor, other: Parts) -> Parts:
        """These rows where ``here`` [rows] is true, else the other ones."""
        here = here.view(-1, 1, 1, 1)
        return Parts(
            shown=torch.where(here, self.shown, other.shown),
            sent=torch.where(here, self.sent, other.sent),
            asked=torch.where(here, self.asked, other.asked),
        )


@dataclass(frozen=True, kw_only=True)
class PairScores:
    """Maps and scores of attention.

    The score of a pair is ``vector · leaky(s + r + e)``, or ``(s + e) · r / sqrt(columns)`` without a vector, where s
    is what the sender shows, r what the receiver asks for and e what the edge gives.

    Args:
        sender: map to s, [models, width, heads * columns].
        receiver: map to r, likewise.
        heads: of one model.
        concat: heads side by side, else their mean.
        values: map to values, [models, width, heads * channels]; None if they are s.
        vector: [models, heads, columns] or None.
        edges: what edges give, [edges, models, heads * columns] after their map, or None.
        edges_sent: whether it is added to the values too.
        fill: features of an added self-loop: one number, or ``"mean"`` for the mean of the messages' features; None if
            the graph's own self-loops are used like other edges.
        slope: of the leaky ReLU below zero.
        bias: [models, out] or None.

    Example:
        >>> both = Affine(weight=torch.ones(2, 3, 8), bias=None)
        >>> PairScores(sender=both, receiver=both, heads=4, vector=torch.ones(2, 4, 2), concat=True).width
        8
    """

    sender: Affine
    receiver: Affine
    heads: int
    concat: bool
    values: Affine | None = None
    vector: Tensor | None = None
    edges: EdgeValues | None = None
    edges_sent: bool = False
    fill: float | Literal["mean"] | None = 0.0
    slope: float = 0.2
    bias: Tensor | None = None

    @property
    def models(self) -> int:
        """How many models are stacked."""
        return int(self.sender.weight.shape[0])

    @property
    def columns(self) -> int:
        """Columns of the values of one model."""
        return int((self.values or self.sender).weight.shape[2])

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return self.columns if self.concat else self.columns // self.heads

    def parts(self, inputs: Tensor) -> Parts:
        """What rows [rows, models or 1, width] show, send and ask for."""
        shown = self._by_head(self.sender(inputs))
        sent = shown if self.values is None else self._by_head(self.values(inputs))
        return Parts(shown=shown, sent=sent, asked=self._by_head(self.receiver(inputs)))

    def score(self, shown: Tensor, asked: Tensor, edges: Tensor | None) -> Tensor:
        """Scores [pairs, models, heads]; edges [pairs, models or 1, heads * columns]."""
        if edges is not None:
            shown = shown + self._by_head(edges)
        if self.vector is None:
            return (shown * asked).sum(-1).div(float(shown.shape[-1]) ** 0.5)
        return (torch.nn.functional.leaky_relu(shown + asked, self.slope) * self.vector).sum(-1)

    def message(self, sent: Tensor, edges: Tensor | None) -> Tensor:
        """The values that are weighted, [pairs, models, heads, channels]."""
        return sent + self._by_head(edges) if self.edges_sent and edges is not None else sent

    def combine(self, above: Tensor, below: Tensor) -> Tensor:
        """Outputs [rows, models, out] from numerators and denominators; without any sender it is 0."""
        rows = above / below.masked_fill(below == 0, 1).unsqueeze(-1)
        rows = rows.flatten(2) if self.concat else rows.mean(2)
        return rows if self.bias is None else rows + self.bias

    def _by_head(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:2], self.heads, rows.shape[2] // self.heads)


class Softmax:
    """Collects the senders of some rows, then sums them relative to the largest score, so that nothing overflows."""

    def __init__(self, scores: PairScores, *, asked: Tensor) -> None:
        self.scores, self.asked = scores, asked  # what the receiving rows ask for, [rows, models, heads, columns]
        self.parts: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []

    def add(self, senders: Parts, owner: Tensor, messages: Messages) -> None:
        """Add the messages of pairs: their senders [pairs], and the row of each (ascending)."""
        owner = messages.spread(owner)
        score = self.scores.score(messages.spread(senders.shown), self.asked[owner], messages.edges)
        values = self.scores.message(messages.spread(senders.sent), messages.edges)
        self.parts.append((values, score, owner, messages.times))

    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Largest score and denominator [rows, models, heads], and numerator [rows, models, heads, channels]."""
        rows, shape = len(self.asked), self.parts[0][0].shape[1:]
        highest = self.asked.new_full((rows, *shape[:2]), -torch.inf)
        for _, score, owner, _ in self.parts:
            highest.scatter_reduce_(0, owner.view(-1, 1, 1).expand_as(score), score, "amax")
        below, above = torch.zeros_like(highest), highest.new_zeros(rows, *shape)
        for values, score, owner, times in self.parts:
            share = (score - highest[owner]).exp_()
            if times is not None:
                share *= times.view(-1, 1, 1)
            start = starts_of(owner, rows)
            below += segment_sum(share.flatten(1), start).view_as(below)
            above += segment_sum((values * share.unsqueeze(-1)).flatten(1), start).view_as(above)
        return highest, below, above


@dataclass(frozen=True, kw_only=True)
class PairAttention:
    """Senders' values weighted by a softmax of scores; a toggle updates numerator and denominator.

    Example:
        >>> from glasshouse.graph.rule.incremental.attention import Affine
        >>> both = Affine(weight=torch.ones(2, 3, 8), bias=None)
        >>> scores = PairScores(sender=both, receiver=both, heads=4, vector=torch.ones(2, 4, 2), concat=False)
        >>> PairAttention(scores=scores).width
        2
    """

    scores: PairScores
    divides_by_degree: bool = False
    counts_senders: bool = False
    hops: int = 1

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return self.scores.width

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        weight = self.scores.sender.weight
        shown = int(weight.shape[2]) * self.scores.models * weight.element_size()
        sent = self.scores.columns * self.scores.models * weight.element_size()
        return Cost(node=2 * shown + 2 * sent, row=2 * shown + 4 * sent, path=4 * shown + 4 * sent + 64)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptPairs, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        parts = self.scores.parts(inputs).each(lambda part: under_every_mask(part, graph))
        above = torch.empty_like(parts.sent)
        highest, below = torch.empty_like(above[..., 0]), torch.empty_like(above[..., 0])
        kept = KeptPairs(layer=self, graph=graph, parts=parts, highest=highest, below=below, above=above, limit=limit)
        sources = graph.sources
        for piece in slices_within((sources.count + 1) * self.cost(shared=False).path, limit):
            rows = torch.arange(piece.start, piece.stop, device=above.device)
            entry, owner = expand(sources.start[rows], sources.count[rows])
            other = sources.other[entry]
            softmax = Softmax(self.scores, asked=parts.asked[rows])
            messages = messages_of(graph, self.scores.edges, other, rows[owner], sources.weight[entry])
            softmax.add(parts.at(other), owner, messages)
            features = kept.sum_features(other, rows[owner], owner, len(rows))
            kept.add_loops(softmax, parts.at(rows), rows, features, graph.degree[rows])
            highest[piece], below[piece], above[piece] = softmax.sums()
        return kept, self.scores.combine(above, below)


@dataclass(frozen=True, kw_only=True)
class KeptPairs:
    """The layer's state under every mask; scores are [N, models, heads], values [N, models, heads, channels]."""

    layer: PairAttention
    graph: MaskedGraph
    parts: Parts
    highest: Tensor  # largest score among a node's senders, -inf without any
    below: Tensor  # denominator
    above: Tensor  # numerator
    limit: int  # bytes that temporary arrays may take

    @property
    def _means(self) -> bool:
        """Whether the features of a self-loop are the mean of those of the messages, and so change with them."""
        return self.layer.scores.edges is not None and self.layer.scores.fill == "mean"

    def sum_features(self, source: Tensor, receiver: Tensor, owner: Tensor, rows: int) -> Tensor | None:
        """Sums of the features of edges, float64 [rows, ...], if self-loops need them."""
        edges = self.layer.scores.edges
        if edges is None or not self._means:
            return None
        return summed_features(edges, self.graph, source, receiver, owner, rows)

    def add_loops(self, softmax: Softmax, own: Parts, node: Tensor, features: Tensor | None, messages: Tensor) -> None:
        """Add the self-loops of rows to their senders.

        Args:
            softmax: of the rows.
            own: their parts.
            node: their nodes [rows].
            features: sums of the features of their messages.
            messages: how many messages there are, [rows].
        """
        edges, fill = self.layer.scores.edges, self.layer.scores.fill
        if fill is None:
            looped = (self.graph.loops[node] > 0).nonzero().squeeze(1)
            where = node[looped]
            softmax.add(own.at(looped), looped, messages_of(self.graph, edges, where, where, self.graph.loops[where]))
            return
        given = None
        if edges is not None:
            if features is not None:
                values = (features / messages.clamp(min=1).view(-1, 1, 1)).to(edges.values.dtype)
            else:
                values = edges.values.new_full((len(node), *edges.values.shape[1:]), float(fill))
            given = edges.map(values)
        every = torch.arange(len(node), device=node.device)
        softmax.add(own, every, Messages(pair=None, times=None, edges=given))

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        fresh = self.parts.at(source.node) if changed is None else self.layer.scores.parts(changed)
        afresh = torch.zeros_like(ball.node, dtype=torch.bool)
        if changed is not None:
            afresh[paths.inside] = True  # the row asks for something else, so every weight changes
        if self._means:
            afresh |= ball.degree_change != 0
        above, below, spoilt = self._update(fresh, rings, inner, outer, skip=afresh)
        rows = (afresh | spoilt).nonzero().squeeze(1)
        senders = self.graph.sources.count[ball.node[rows]] + paths.start.diff()[rows] + 1
        for part in slices_within(senders * self.layer.cost(shared=False).path, self.limit):  # a hub has many
            some = rows[part]
            above[some], below[some] = self._sum_afresh(fresh, rings, inner, outer, some)
        return Toggled(self.layer.scores.combine(above, below))

    def _update(
        self, fresh: Parts, rings: Rings, inner: int, outer: int, *, skip: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Numerators and denominators after the exchange of changed messages, and the rows where that lost digits."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        scores, receiver = self.layer.scores, paths.receiver
        wanted = (~skip[receiver]).nonzero().squeeze(1)
        receiver, sender = receiver[wanted], paths.source[wanted]
        node, before = source.node[sender], self.below[ball.node]
        messages = messages_of(self.graph, scores.edges, node, ball.node[receiver], paths.weight[wanted])
        receiver, sender, node = messages.spread(receiver), messages.spread(sender), messages.spread(node)
        asked, highest = self.parts.asked[ball.node[receiver]], self.highest[ball.node[receiver]]
        spoilt = torch.zeros_like(skip)
        spoilt[receiver[torch.isinf(highest).flatten(1).any(1)]] = True  # it had no sender before
        highest = highest.masked_fill(torch.isinf(highest), 0)
        new = scores.score(fresh.shown[sender], asked, messages.edges) - highest
        old = scores.score(self.parts.shown[node], asked, messages.edges) - highest
        spoilt[receiver[(new > _HIGHEST).flatten(1).any(1)]] = True
        arrives, leaves = torch.ones_like(source.degree_change), torch.ones_like(source.degree_change)
        arrives[source.centre] = (~rings.removes).to(arrives.dtype)  # a removed target no longer sends
        leaves[source.centre] = rings.removes.to(leaves.dtype)  # an added one did not send before
        times = 1 if messages.times is None else messages.times
        new = new.clamp_(max=_HIGHEST).exp_() * (times * arrives[sender]).view(-1, 1, 1)
        old = old.clamp_(max=_HIGHEST).exp_() * (times * leaves[sender]).view(-1, 1, 1)
        start = starts_of(receiver, len(ball.node))
        below = before + segment_sum((new - old).flatten(1), start).view_as(before)
        spoilt |= (below < _KEPT_SHARE * before).flatten(1).any(1)
        change = scores.message(fresh.sent[sender], messages.edges) * new.unsqueeze(-1)
        change -= scores.message(self.parts.sent[node], messages.edges) * old.unsqueeze(-1)
        above = self.above[ball.node]
        return above + segment_sum(change.flatten(1), start).view_as(above), below, spoilt

    def _sum_afresh(self, fresh: Parts, rings: Rings, inner: int, outer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Numerators and denominators of some rows of the ball from all their senders."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        scores, sources, node, size = self.layer.scores, self.graph.sources, ball.node[rows], len(self.graph.members)
        place, within = lookup(source.keys, ball.keys[rows])
        own = fresh.at(torch.where(within, place, 0)).where(within, self.parts.at(node))
        softmax = Softmax(scores, asked=own.asked)
        # senders as they were
        entry, owner = expand(sources.start[node], sources.count[node])
        _, moved = lookup(source.keys, ball.target[rows][owner] * size + sources.other[entry])
        still = (~moved).nonzero().squeeze(1)
        entry, owner = entry[still], owner[still]
        other = sources.other[entry]
        messages = messages_of(self.graph, scores.edges, other, node[owner], sources.weight[entry])
        softmax.add(self.parts.at(other), owner, messages)
        features = self.sum_features(other, node[owner], owner, len(rows))
        # changed senders; a removed target is not among them
        here = torch.ones_like(source.node, dtype=torch.bool)
        here[source.centre] = ~rings.removes
        entry, owner = expand(paths.start[rows], paths.start[rows + 1] - paths.start[rows])
        sends = here[paths.source[entry]].nonzero().squeeze(1)
        entry, owner = entry[sends], owner[sends]
        sender = paths.source[entry]
        other = source.node[sender]
        messages = messages_of(self.graph, scores.edges, other, node[owner], paths.weight[entry])
        softmax.add(fresh.at(sender), owner, messages)
        more = self.sum_features(other, node[owner], owner, len(rows))
        features = features + more if features is not None and more is not None else None
        self.add_loops(softmax, own, node, features, self.graph.degree[node] + ball.degree_change[rows])
        _, below, above = softmax.sums()
        return above, below
