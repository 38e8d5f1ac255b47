"""Attention whose scores are made for each pair of nodes: GATv2, the transformer, and GAT with features of edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings
from glasshouse.graph.rule.toggle.layers.base import Cost, Toggled, under_every_mask
from glasshouse.graph.rule.toggle.layers.edge_values import Messages, messages_of, summed_features
from glasshouse.graph.rule.toggle.layers.pair_scores import PairScores, Parts, Softmax
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import expand, lookup, segment_sum, slices_within, starts_of

__all__ = ["PairAttention"]

_KEPT_SHARE = 0.25  # a denominator that falls below this share of itself has lost digits: the row is summed again
_HIGHEST = 20.0  # also a row with a new sender this far above the old maximum, before exponentials overflow


@dataclass(frozen=True, kw_only=True)
class PairAttention:
    """Senders' values weighted by a softmax of scores; a toggle updates numerator and denominator.

    Example:
        >>> from glasshouse.graph.rule.toggle.layers.pair_scores import Affine
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
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        weight = self.scores.sender.weight
        shown = int(weight.shape[2]) * self.scores.models * weight.element_size()
        sent = self.scores.columns * self.scores.models * weight.element_size()
        return Cost(node=2 * shown + 2 * sent, row=2 * shown + 4 * sent, path=4 * shown + 4 * sent + 64)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptPairs, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
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
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`."""
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
