"""Messages of pairs of nodes, weighted by a softmax: a toggle updates its numerator and its denominator.

A sum or a mean of messages that depend on both ends, or on the edge, is the same with equal weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from glasshouse.graph.layers.layer_type import LeakySum
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.balls import Rings
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.layer import (
    Cost,
    EdgeValues,
    Messages,
    Toggled,
    messages_of,
    summed_features,
    under_every_mask,
)
from glasshouse.graph.rule.incremental.segments import expand, lookup, segment_sum, slices_within, starts_of
from glasshouse.graph.rule.incremental.triton_attention import Scored, attended, attended_afresh, attended_update

_KEPT_SHARE = 0.25  # a denominator that falls below this share of itself has lost digits: the row is summed again
_HIGHEST = 20.0  # also a row with a new sender this far above the old maximum, before exponentials overflow


class Ends(NamedTuple):
    """What rows show to receivers, the values that they send, and what they ask senders for.

    All are [rows, models or 1, heads, ...]; values and what is shown may be one tensor.
    """

    shown: Tensor
    sent: Tensor
    asked: Tensor | None

    def each(self, function: Callable[[Tensor], Tensor]) -> Ends:
        """The result of a function of each part."""
        sent, asked = function(self.sent), None if self.asked is None else function(self.asked)
        return Ends(sent if self.shown is self.sent else function(self.shown), sent, asked)

    def at(self, rows: Tensor) -> Ends:
        """Some rows."""
        return self.each(lambda part: part[rows])

    def where(self, here: Tensor, other: Ends) -> Ends:
        """These rows where ``here`` [rows] is true, else the other ones."""
        here = here.view(-1, 1, 1, 1)
        asked = None if self.asked is None or other.asked is None else torch.where(here, self.asked, other.asked)
        return Ends(torch.where(here, self.shown, other.shown), torch.where(here, self.sent, other.sent), asked)

    def scored(self) -> Scored:
        """As kernels read them: values [rows, models * heads, channels], scores [rows, models * heads]."""
        assert self.asked is not None  # noqa: S101  # scores are sums of both
        return Scored(
            values=self.sent.flatten(1, 2).contiguous(),
            sent=self.shown.flatten(1).contiguous(),
            received=self.asked.flatten(1).contiguous(),
        )


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Messages of pairs, weighted; arguments as of `glasshouse.graph.layers.layer_type.Operations.attend`.

    Args:
        ends: from inputs [rows, models or 1, width] to their parts.
        score: from parts [pairs, models or 1, heads, ...] to scores [pairs, models, heads], or None.
        message: likewise, to messages [pairs, models, heads, channels]; None for what is sent.
        edges: what edges give, or None.
        loops: features of an added self-loop, or None.
        mean: whether weights are divided by their sum.
        concat: heads side by side, else their mean.
        bias: [models, out] or None.
        models: how many models are stacked; 1 if all of them make the same.
        heads: of one model.
        channels: of one head's values.
        beside: numbers of one row beside its values: what it shows and asks for.
        sample: some numbers, for their type and device.

    Example:
        >>> def ends(rows):
        ...     heads = rows.unflatten(2, (4, -1))
        ...     return Ends(heads, heads, heads)
        >>> Attention.of(ends, torch.ones(5, 2, 8), score=lambda s, r, e: (s * r).sum(-1), concat=False).width
        2
    """

    ends: Callable[[Tensor], Ends]
    score: Callable[..., Tensor] | None
    message: Callable[..., Tensor] | None
    edges: EdgeValues | None
    loops: float | Literal["mean"] | None
    mean: bool
    concat: bool
    bias: Tensor | None
    models: int
    heads: int
    channels: int
    beside: int
    sample: Tensor
    divides_by_degree: bool = False
    counts_senders: bool = False
    hops: int = 1

    @classmethod
    def of(
        cls,
        ends: Callable[[Tensor], Ends],
        sample: Tensor,
        *,
        score: Callable[..., Tensor] | None = None,
        message: Callable[..., Tensor] | None = None,
        edges: EdgeValues | None = None,
        loops: float | Literal["mean"] | None = None,
        mean: bool = True,
        concat: bool = True,
        bias: Tensor | None = None,
    ) -> Attention:
        """A layer, whose widths are found with a few rows [rows, models or 1, width]."""
        parts = ends(sample)
        given = () if edges is None else (edges.of(torch.arange(min(1, len(edges.values)), device=sample.device)),)
        return cls(
            ends=ends,
            score=score,
            message=message,
            edges=edges,
            loops=loops,
            mean=mean,
            concat=concat,
            bias=bias,
            models=max(part.shape[1] for part in (*parts, *given) if part is not None),
            heads=int(parts.sent.shape[2]),
            channels=int(parts.sent.shape[3]),
            beside=sum(part.shape[2] * part.shape[3] for part in parts if part is not None and part is not parts.sent),
            sample=sample,
        )

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return self.channels * self.heads if self.concat else self.channels

    def fused(self, values: Tensor) -> bool:
        """Whether kernels do the work: they know GAT's scores, with a self-loop at every node."""
        return (
            isinstance(self.score, LeakySum)
            and self.edges is None
            and self.message is None
            and self.loops is not None
            and triton.usable(values)
        )

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        item = self.models * self.sample.element_size()
        sent, beside, scores = self.heads * self.channels * item, self.beside * item, self.heads * item
        path = 32 if self.fused(self.sample) else 4 * sent + 4 * beside + 2 * scores + 64  # kernels store nothing
        return Cost(node=3 * sent + beside + 2 * scores, row=4 * sent + 2 * beside, path=path)

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptAttention, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        parts = self.ends(inputs).each(lambda part: under_every_mask(part, graph).contiguous())
        rows = (len(parts.sent), self.models, self.heads)
        if self.fused(parts.sent):
            sums = attended(parts.scored(), graph, slope=self.score.slope)  # type: ignore[union-attr]
            highest, below, above = (one.view(*rows, *one.shape[2:]) for one in sums)
        else:
            above = parts.sent.new_empty(*rows, self.channels)
            highest = above.new_empty(rows if self.score is not None else (rows[0], 1, 1))
            below = torch.empty_like(highest)
        kept = KeptAttention(
            layer=self, graph=graph, parts=parts, highest=highest, below=below, above=above, limit=limit
        )
        if not self.fused(parts.sent):
            kept.fill()
        # what follows may write into the outputs, and sums without a bias would be the kept ones themselves
        return kept, self.combine(above if self.mean else above.clone(), below)

    def pairs(self, senders: Ends, asked: Tensor | None, edges: Tensor | None) -> tuple[Tensor, Tensor]:
        """Scores [pairs, models, heads], or 0 [pairs, 1, 1], and messages [pairs, models, heads, channels]."""
        edges = None if edges is None else edges.unflatten(2, (self.heads, -1))
        shown, sent, _ = senders
        values = sent if self.message is None else self.message(shown, sent, asked, edges)
        values = values.expand(-1, self.models, -1, -1)
        if self.score is None:
            return sent.new_zeros(len(sent), 1, 1), values
        return self.score(shown, asked, edges).expand(-1, self.models, -1), values

    def combine(self, above: Tensor, below: Tensor) -> Tensor:
        """Outputs [rows, models, out] from numerators and denominators; without any sender it is 0."""
        return self.finish(above / below.masked_fill(below == 0, 1).unsqueeze(-1) if self.mean else above)

    def finish(self, rows: Tensor) -> Tensor:
        """Outputs [rows, models, out] from what each head gives, [rows, models, heads, channels]."""
        rows = rows.flatten(2) if self.concat else rows.mean(2)
        return rows if self.bias is None else rows + self.bias


def _weighted(values: Tensor, share: Tensor) -> Tensor:
    """Values of pairs, which are copies that nobody reads again, times their shares; in place if possible."""
    share = share.unsqueeze(-1)
    return values.mul_(share) if values.is_contiguous() else values * share


class _Softmax:
    """Collects the senders of some rows, then sums them relative to the largest score, so that nothing overflows."""

    def __init__(self, layer: Attention, *, rows: int, asked: Tensor | None) -> None:
        self.layer, self.rows, self.asked = layer, rows, asked  # what the rows ask for, [rows, models, heads, columns]
        self.parts: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []

    def add(self, senders: Ends, owner: Tensor, messages: Messages) -> None:
        """Add the messages of pairs: their senders [pairs], and the row of each (ascending)."""
        owner = messages.spread(owner)
        asked = None if self.asked is None else self.asked[owner]
        score, values = self.layer.pairs(senders.each(messages.spread), asked, messages.edges)
        self.parts.append((values, score, owner, messages.times))

    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Largest score and denominator [rows, models, heads], and numerator [rows, models, heads, channels]."""
        values, score, _, _ = self.parts[0]
        highest = score.new_full((self.rows, *score.shape[1:]), -torch.inf)
        for _, score, owner, _ in self.parts:
            highest.scatter_reduce_(0, owner.view(-1, 1, 1).expand_as(score), score, "amax")
        below, above = torch.zeros_like(highest), highest.new_zeros(self.rows, *values.shape[1:])
        for values, score, owner, times in self.parts:
            share = (score - highest[owner]).exp_()
            if times is not None:
                share *= times.view(-1, 1, 1)
            start = starts_of(owner, self.rows)
            below += segment_sum(share.flatten(1), start).view_as(below)
            equal = self.layer.score is None and times is None  # every share is 1
            weighted = values if equal else _weighted(values, share)
            above += segment_sum(weighted.flatten(1), start).view_as(above)
        return highest, below, above


@dataclass(frozen=True, kw_only=True)
class KeptAttention:
    """The layer's state under every mask; scores are [N, models, heads], values [N, models, heads, channels]."""

    layer: Attention
    graph: MaskedGraph
    parts: Ends
    highest: Tensor  # largest score among a node's senders, -inf without any
    below: Tensor  # denominator
    above: Tensor  # numerator
    limit: int  # bytes that temporary arrays may take

    def fill(self) -> None:
        """Sum the messages of all nodes."""
        graph, sources, edges = self.graph, self.graph.sources, self.layer.edges
        for piece in slices_within((sources.count + 1) * self.layer.cost(shared=False).path, self.limit):
            rows = torch.arange(piece.start, piece.stop, device=self.above.device)
            entry, owner = expand(sources.start[rows], sources.count[rows])
            other, own = sources.other[entry], self.parts.at(rows)
            softmax = _Softmax(self.layer, rows=len(rows), asked=own.asked)
            softmax.add(
                self.parts.at(other), owner, messages_of(graph, edges, other, rows[owner], sources.weight[entry])
            )
            features = self._sum_features(other, rows[owner], owner, len(rows))
            self._add_loops(softmax, own, rows, features, graph.degree[rows])
            self.highest[piece], self.below[piece], self.above[piece] = softmax.sums()

    @property
    def _means(self) -> bool:
        """Whether the features of a self-loop are the mean of those of the messages, and so change with them."""
        return self.layer.edges is not None and self.layer.loops == "mean"

    def _sum_features(self, source: Tensor, receiver: Tensor, owner: Tensor, rows: int) -> Tensor | None:
        """Sums of the features of edges, float64 [rows, ...], if self-loops need them."""
        edges = self.layer.edges
        if edges is None or not self._means:
            return None
        return summed_features(edges, self.graph, source, receiver, owner, rows)

    def _add_loops(self, softmax: _Softmax, own: Ends, node: Tensor, features: Tensor | None, messages: Tensor) -> None:
        """Add the self-loops of rows to their senders.

        Args:
            softmax: of the rows.
            own: their parts.
            node: their nodes [rows].
            features: sums of the features of their messages.
            messages: how many messages there are, [rows].
        """
        edges, fill = self.layer.edges, self.layer.loops
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
            given = edges.made(values)
        every = torch.arange(len(node), device=node.device)
        softmax.add(own, every, Messages(pair=None, times=None, edges=given))

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`."""
        if self.layer.fused(self.above):
            return Toggled(self._fused(changed, rings, inner, outer))
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        fresh = self.parts.at(source.node) if changed is None else self.layer.ends(changed)
        afresh = torch.zeros_like(ball.node, dtype=torch.bool)
        if changed is not None and self.parts.asked is None and self.layer.loops is None:
            afresh[paths.inside] = self.graph.loops[source.node] > 0  # the row's message to itself changes
        elif changed is not None:
            afresh[paths.inside] = True  # the row asks for something else, so every weight changes
        if self._means:
            afresh |= ball.degree_change != 0
        above, below, spoilt = self._update(fresh, rings, inner, outer, skip=afresh, same=changed is None)
        rows = (afresh | spoilt).nonzero().squeeze(1)
        senders = self.graph.sources.count[ball.node[rows]] + paths.start.diff()[rows] + 1
        for part in slices_within(senders * self.layer.cost(shared=False).path, self.limit):  # a hub has many
            some = rows[part]
            above[some], below[some] = self._sum_afresh(fresh, rings, inner, outer, some)
        return Toggled(self.layer.combine(above, below))

    def _fused(self, changed: Tensor | None, rings: Rings, inner: int, outer: int) -> Tensor:
        """The same in two passes on a GPU: rows whose messages are exchanged, then those that are summed afresh."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        kept, news = self.parts.scored(), None if changed is None else self.layer.ends(changed).scored()
        kind = torch.zeros_like(source.node, dtype=torch.int32)
        kind[source.centre] = 2 - rings.removes.to(torch.int32)
        place = torch.full_like(ball.node, -1)
        place[paths.inside] = torch.arange(len(source.node), device=place.device)
        slope: float = self.layer.score.slope  # type: ignore[union-attr]
        sums = (self.highest.flatten(1), self.below.flatten(1), self.above.flatten(1, 2))
        rows, spoilt = attended_update(
            *(kept, sums, news, ball, source, paths),
            inner=place,
            kind=kind,
            slope=slope,
            limit=_HIGHEST,
            share=_KEPT_SHARE,
        )
        again = spoilt.nonzero().squeeze(1)
        attended_afresh(rows, again, kept, news, ball, source, paths, self.graph, inner=place, kind=kind, slope=slope)
        return self.layer.finish(rows.view(len(rows), *self.above.shape[1:]))

    def _update(
        self, fresh: Ends, rings: Rings, inner: int, outer: int, *, skip: Tensor, same: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Numerators and denominators after the exchange of changed messages, and the rows where that lost digits."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        layer, receiver = self.layer, paths.receiver
        wanted = (~skip[receiver]).nonzero().squeeze(1)
        receiver, sender = receiver[wanted], paths.source[wanted]
        node, before = source.node[sender], self.below[ball.node]
        messages = messages_of(self.graph, layer.edges, node, ball.node[receiver], paths.weight[wanted])
        receiver, sender, node = messages.spread(receiver), messages.spread(sender), messages.spread(node)
        asked = None if self.parts.asked is None else self.parts.asked[ball.node[receiver]]
        highest = self.highest[ball.node[receiver]]
        spoilt = torch.zeros_like(skip)
        spoilt[receiver[torch.isinf(highest).flatten(1).any(1)]] = True  # it had no sender before
        highest = highest.masked_fill(torch.isinf(highest), 0)
        new, new_values = layer.pairs(fresh.at(sender), asked, messages.edges)
        # the first layer's inputs do not change: each message of a target comes or goes as it is
        old, old_values = (new, new_values) if same else layer.pairs(self.parts.at(node), asked, messages.edges)
        new, old = new - highest, old - highest
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
        if same:
            change = _weighted(new_values, new - old)
        else:
            change = _weighted(new_values, new).sub_(_weighted(old_values, old))
        above = self.above[ball.node]
        return above + segment_sum(change.flatten(1), start).view_as(above), below, spoilt

    def _sum_afresh(self, fresh: Ends, rings: Rings, inner: int, outer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Numerators and denominators of some rows of the ball from all their senders."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        edges, sources, node, size = self.layer.edges, self.graph.sources, ball.node[rows], len(self.graph.members)
        place, within = lookup(source.keys, ball.keys[rows])
        own = fresh.at(torch.where(within, place, 0)).where(within, self.parts.at(node))
        softmax = _Softmax(self.layer, rows=len(rows), asked=own.asked)
        # senders as they were
        entry, owner = expand(sources.start[node], sources.count[node])
        _, moved = lookup(source.keys, ball.target[rows][owner] * size + sources.other[entry])
        still = (~moved).nonzero().squeeze(1)
        entry, owner = entry[still], owner[still]
        other = sources.other[entry]
        softmax.add(
            self.parts.at(other), owner, messages_of(self.graph, edges, other, node[owner], sources.weight[entry])
        )
        features = self._sum_features(other, node[owner], owner, len(rows))
        # changed senders; a removed target is not among them
        here = torch.ones_like(source.node, dtype=torch.bool)
        here[source.centre] = ~rings.removes
        entry, owner = expand(paths.start[rows], paths.start[rows + 1] - paths.start[rows])
        sends = here[paths.source[entry]].nonzero().squeeze(1)
        entry, owner = entry[sends], owner[sends]
        sender = paths.source[entry]
        other = source.node[sender]
        softmax.add(fresh.at(sender), owner, messages_of(self.graph, edges, other, node[owner], paths.weight[entry]))
        more = self._sum_features(other, node[owner], owner, len(rows))
        features = features + more if features is not None and more is not None else None
        self._add_loops(softmax, own, node, features, self.graph.degree[node] + ball.degree_change[rows])
        _, below, above = softmax.sums()
        return above, below
