"""Graph attention: a softmax over senders is a numerator and a denominator, and a toggle updates both sums."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Ball, Paths, Rings
from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.fused.attention import Scored, attended, attended_afresh, attended_update
from glasshouse.graph.rule.toggle.layers.base import Cost, Toggled, project, under_every_mask
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import expand, lookup, segment_sum, slices_within, starts_of

__all__ = ["Attention"]

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
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        wide = self.weight.shape[0] * self.weight.shape[2] * self.weight.element_size()
        narrow = self.weight.shape[0] * self.heads * self.weight.element_size()
        if jit.usable(self.weight):  # kernels store nothing for a path
            return Cost(node=3 * wide + 4 * narrow, row=4 * wide + 4 * narrow, path=32)
        return Cost(node=3 * wide + 4 * narrow, row=4 * wide + 4 * narrow, path=3 * wide + 6 * narrow + 64)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptAttention, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        values, sent, received = (under_every_mask(part, graph) for part in self.scores(inputs))
        if jit.usable(values):
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
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`."""
        if jit.usable(self.values):
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
