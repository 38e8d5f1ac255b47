"""Messages of pairs of nodes, weighted by a softmax: a toggle updates its numerator and its denominator.

A sum or a mean of messages that depend on both ends, or on the edge, is the same with equal weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from glasshouse.graph.layers.layer_type import LeakySum
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.layer import Cost, Layer, Toggled, under_every_mask
from glasshouse.graph.rule.incremental.segments import expand, lookup, segment_sum, slices_within, starts_of
from glasshouse.graph.rule.incremental.triton_attention import Scored, attended, attended_after

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
class EdgeValues:
    """Features of the edges, and what each model makes of them."""

    values: Tensor  # [edges, models or 1, width]
    map: Callable[[Tensor], Tensor] | None = None  # from features [some, models or 1, width] to what is used

    def of(self, number: Tensor) -> Tensor:
        """What edges [some] give, [some, models or 1, out]."""
        return self.made(self.values[number])

    def made(self, values: Tensor) -> Tensor:
        """Features [some, models or 1, width] as they are used."""
        return values if self.map is None else self.map(values)


@dataclass(frozen=True, kw_only=True)
class Attention(Layer):
    """Messages of pairs, weighted; arguments as of `glasshouse.graph.layers.layer_type.Operations.attend`."""

    ends: Callable[[Tensor], Ends]  # from inputs [rows, models or 1, width] to their parts
    sample: Tensor  # a few such inputs, to find widths
    score: Callable[..., Tensor] | None = None  # of pairs, from their parts [pairs, models or 1, heads, ...]
    message: Callable[..., Tensor] | None = None  # likewise [pairs, models, heads, channels]; None for what is sent
    edges: EdgeValues | None = None  # what edges give
    loops: float | Literal["mean"] | None = None  # features of an added self-loop
    mean: bool = True  # whether weights are divided by their sum
    concat: bool = True  # heads side by side, else their mean
    bias: Tensor | None = None  # [models, out]

    @cached_property
    def _parts(self) -> Ends:
        return self.ends(self.sample)

    @cached_property
    def models(self) -> int:
        """How many models are stacked; 1 if all of them make the same."""
        given = [part for part in self._parts if part is not None]
        if self.edges is not None:
            first = torch.arange(min(1, len(self.edges.values)), device=self.sample.device)
            given.append(self.edges.of(first))
        return max(part.shape[1] for part in given)

    @property
    def heads(self) -> int:
        """Of one model."""
        return int(self._parts.sent.shape[2])

    @property
    def channels(self) -> int:
        """Of one head's values."""
        return int(self._parts.sent.shape[3])

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return self.channels * self.heads if self.concat else self.channels

    @property
    def means(self) -> bool:
        """Whether the features of a self-loop are the mean of those of the messages, and so change with them."""
        return self.edges is not None and self.loops == "mean"

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
        sent, scores = self.heads * self.channels * item, self.heads * item
        others = [part for part in self._parts if part is not None and part is not self._parts.sent]
        beside = sum(part.shape[2] * part.shape[3] for part in others) * item  # what a row shows and asks for
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

    def __init__(self, kept: KeptAttention, node: Tensor, own: Ends) -> None:
        self.kept, self.node, self.own = kept, node, own  # whose rows, and what they show, send and ask for
        self.parts: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []
        self.features: Tensor | None = None  # float64 [rows, ...], those of edges added up, if self-loops need them

    def add(self, senders: Ends, other: Tensor, owner: Tensor, times: Tensor) -> None:
        """Add pairs [pairs]: what senders show, which nodes they are, the row of each (ascending), and its edges."""
        edges, graph, rows = self.kept.layer.edges, self.kept.graph, len(self.node)
        if edges is None:
            self._add(senders, owner, None, times)
            return
        number, pair = graph.edges_between(other, self.node[owner])
        owner, values = owner[pair], edges.values[number]
        if self.kept.layer.means:
            found = segment_sum(values.double().flatten(1), starts_of(owner, rows)).view(rows, *values.shape[1:])
            self.features = found if self.features is None else self.features + found
        self._add(senders.at(pair), owner, edges.made(values), None)

    def add_loops(self, messages: Tensor) -> None:
        """Add the self-loops of rows that have so many messages, [rows], to their senders."""
        graph, edges, fill = self.kept.graph, self.kept.layer.edges, self.kept.layer.loops
        if fill is None:
            looped = (graph.loops[self.node] > 0).nonzero().squeeze(1)
            where = self.node[looped]
            self.add(self.own.at(looped), where, looped, graph.loops[where])
            return
        given = None
        if edges is not None:
            if self.features is not None:
                values = (self.features / messages.clamp(min=1).view(-1, 1, 1)).to(edges.values.dtype)
            else:
                values = edges.values.new_full((len(self.node), *edges.values.shape[1:]), float(fill))
            given = edges.made(values)
        self._add(self.own, torch.arange(len(self.node), device=self.node.device), given, None)

    def _add(self, senders: Ends, owner: Tensor, edges: Tensor | None, times: Tensor | None) -> None:
        asked = None if self.own.asked is None else self.own.asked[owner]
        score, values = self.kept.layer.pairs(senders, asked, edges)
        self.parts.append((values, score, owner, times))

    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Largest score and denominator [rows, models, heads], and numerator [rows, models, heads, channels]."""
        rows, (values, score, _, _) = len(self.node), self.parts[0]
        highest = score.new_full((rows, *score.shape[1:]), -torch.inf)
        for _, score, owner, _ in self.parts:
            highest.scatter_reduce_(0, owner.view(-1, 1, 1).expand_as(score), score, "amax")
        below, above = torch.zeros_like(highest), highest.new_zeros(rows, *values.shape[1:])
        for values, score, owner, times in self.parts:
            share = (score - highest[owner]).exp_()
            if times is not None:
                share *= times.view(-1, 1, 1)
            start = starts_of(owner, rows)
            below += segment_sum(share.flatten(1), start).view_as(below)
            equal = self.kept.layer.score is None and times is None  # every share is 1
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
        sources = self.graph.sources
        for piece in slices_within((sources.count + 1) * self.layer.cost(shared=False).path, self.limit):
            rows = torch.arange(piece.start, piece.stop, device=self.above.device)
            entry, owner = expand(sources.start[rows], sources.count[rows])
            softmax, other = _Softmax(self, rows, self.parts.at(rows)), sources.other[entry]
            softmax.add(self.parts.at(other), other, owner, sources.weight[entry])
            softmax.add_loops(self.graph.degree[rows])
            self.highest[piece], self.below[piece], self.above[piece] = softmax.sums()

    def toggle(self, changed: Tensor | None, step: Step) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`."""
        if self.layer.fused(self.above):
            return Toggled(self._fused(changed, step))
        ball, source, paths = step.ball, step.source, step.paths
        fresh = self.parts.at(source.node) if changed is None else self.layer.ends(changed)
        afresh = torch.zeros_like(ball.node, dtype=torch.bool)
        if changed is not None and self.parts.asked is None and self.layer.loops is None:
            afresh[paths.inside] = self.graph.loops[source.node] > 0  # the row's message to itself changes
        elif changed is not None:
            afresh[paths.inside] = True  # the row asks for something else, so every weight changes
        if self.layer.means:
            afresh |= ball.degree_change != 0
        above, below, spoilt = self._update(fresh, step, skip=afresh, same=changed is None)
        rows = (afresh | spoilt).nonzero().squeeze(1)
        senders = self.graph.sources.count[ball.node[rows]] + paths.start.diff()[rows] + 1
        for part in slices_within(senders * self.layer.cost(shared=False).path, self.limit):  # a hub has many
            some = rows[part]
            above[some], below[some] = self._sum_afresh(fresh, step, some)
        return Toggled(self.layer.combine(above, below))

    def _fused(self, changed: Tensor | None, step: Step) -> Tensor:
        """The same in two passes on a GPU: rows whose messages are exchanged, then those that are summed afresh."""
        news = None if changed is None else self.layer.ends(changed).scored()
        sums = (self.highest.flatten(1), self.below.flatten(1), self.above.flatten(1, 2))
        slope: float = self.layer.score.slope  # type: ignore[union-attr]
        options = {"slope": slope, "limit": _HIGHEST, "share": _KEPT_SHARE}
        rows = attended_after(self.parts.scored(), sums, news, step, self.graph, **options)
        return self.layer.finish(rows.view(len(rows), *self.above.shape[1:]))

    def _update(self, fresh: Ends, step: Step, *, skip: Tensor, same: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Numerators and denominators after the exchange of changed messages, and the rows where that lost digits."""
        ball, source, paths = step.ball, step.source, step.paths
        layer, receiver = self.layer, paths.receiver
        wanted = (~skip[receiver]).nonzero().squeeze(1)
        receiver, sender = receiver[wanted], paths.source[wanted]
        node, before = source.node[sender], self.below[ball.node]
        times, edges = paths.weight[wanted], None
        if layer.edges is not None:  # each edge of a pair is a message of its own
            number, pair = self.graph.edges_between(node, ball.node[receiver])
            receiver, sender, node = receiver[pair], sender[pair], node[pair]
            times, edges = torch.ones_like(times[pair]), layer.edges.of(number)
        asked = None if self.parts.asked is None else self.parts.asked[ball.node[receiver]]
        highest = self.highest[ball.node[receiver]]
        spoilt = torch.zeros_like(skip)
        spoilt[receiver[torch.isinf(highest).flatten(1).any(1)]] = True  # it had no sender before
        highest = highest.masked_fill(torch.isinf(highest), 0)
        new, new_values = layer.pairs(fresh.at(sender), asked, edges)
        # the first layer's inputs do not change: each message of a target comes or goes as it is
        old, old_values = (new, new_values) if same else layer.pairs(self.parts.at(node), asked, edges)
        new, old = new - highest, old - highest
        spoilt[receiver[(new > _HIGHEST).flatten(1).any(1)]] = True
        arrives = (step.kind != 1).to(source.degree_change.dtype)  # a removed target no longer sends
        leaves = (step.kind != 2).to(source.degree_change.dtype)  # an added one did not send before
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

    def _sum_afresh(self, fresh: Ends, step: Step, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Numerators and denominators of some rows of the ball from all their senders."""
        ball, source, paths = step.ball, step.source, step.paths
        sources, node, size = self.graph.sources, ball.node[rows], len(self.graph.members)
        place, within = lookup(source.keys, ball.keys[rows])
        own = fresh.at(torch.where(within, place, 0)).where(within, self.parts.at(node))
        softmax = _Softmax(self, node, own)
        # senders as they were
        entry, owner = expand(sources.start[node], sources.count[node])
        _, moved = lookup(source.keys, ball.target[rows][owner] * size + sources.other[entry])
        still = (~moved).nonzero().squeeze(1)
        entry, owner = entry[still], owner[still]
        other = sources.other[entry]
        softmax.add(self.parts.at(other), other, owner, sources.weight[entry])
        # changed senders; a removed target is not among them
        entry, owner = expand(paths.start[rows], paths.start[rows + 1] - paths.start[rows])
        sends = (step.kind != 1)[paths.source[entry]].nonzero().squeeze(1)
        entry, owner = entry[sends], owner[sends]
        sender = paths.source[entry]
        softmax.add(fresh.at(sender), source.node[sender], owner, paths.weight[entry])
        softmax.add_loops(self.graph.degree[node] + ball.degree_change[rows])
        _, below, above = softmax.sums()
        return above, below
