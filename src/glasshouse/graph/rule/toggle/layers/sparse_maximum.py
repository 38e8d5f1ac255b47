"""GraphSAGE-max over sparse features, such as bags of words: only non-zero features are ranked and toggled.

It stands for a first layer whose features are at least 0 and mostly 0. The largest value of a feature among a node's
senders is then 0 unless a sender has it, so no array of nodes by features is ever made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings
from glasshouse.graph.rule.toggle.layers.base import Cost, Layer, Toggled, under_every_mask
from glasshouse.graph.rule.toggle.layers.maximum import Maximum
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import bag_sum, expand, lookup, slices_within, starts_of

__all__ = ["SparseMaximum", "SparseRows", "for_features", "sparse_rows"]

_MOST = 0.05  # share of non-zero features up to which lists are faster than arrays
_ENTRY_BYTES = 120  # while entries are sorted, or looked up


@dataclass(frozen=True, kw_only=True)
class SparseRows:
    """The non-zero features of n nodes: those of node x are at ``start[x] ... start[x + 1] - 1``.

    Example:
        >>> sparse_rows(torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])).column
        tensor([2])
    """

    start: Tensor  # [n + 1]
    column: Tensor  # [entries]
    value: Tensor  # [entries], above 0
    width: int

    @property
    def count(self) -> Tensor:
        """[n], non-zero features of each node."""
        return self.start.diff()

    def times(self, weight: Tensor) -> Tensor:
        """The features by a weight [models, width, out], [n, models * out]."""
        return bag_sum(flat(weight), self.column, self.start, self.value)


def sparse_rows(x: Tensor) -> SparseRows:
    """The non-zero features of x [n, width]."""
    row, column = x.nonzero(as_tuple=True)
    return SparseRows(start=starts_of(row, len(x)), column=column, value=x[row, column], width=x.shape[1])


def flat(weight: Tensor) -> Tensor:
    """A weight [models, width, out] with one row per input, [width, models * out]."""
    return weight.transpose(0, 1).reshape(weight.shape[1], -1)


def for_features(layer: Layer, x: Tensor, edge_index: Tensor) -> Layer:
    """The form of a first layer that suits the features [n, width]: sparse where that is possible and faster.

    Example:
        >>> layer = Maximum(weight=torch.ones(1, 40, 2), root=None, bias=None)
        >>> edge_index = torch.tensor([[0], [1]])
        >>> type(for_features(layer, torch.eye(40), edge_index)).__name__
        'SparseMaximum'
        >>> type(for_features(layer, -torch.eye(40), edge_index)).__name__
        'Maximum'
    """
    if not isinstance(layer, Maximum) or x.numel() == 0:
        return layer
    if int(x.count_nonzero()) > _MOST * x.numel() or not bool((x >= 0).all()):
        return layer
    rows = sparse_rows(x.to(layer.weight.dtype))
    sent = int(rows.count[edge_index[0]].sum())
    return SparseMaximum(dense=layer, features=rows, entries=-(-sent // len(x)))


class Ranked(NamedTuple):
    """Features that senders have: one entry per pair (node, feature), ``key = node * width + feature`` ascending."""

    key: Tensor
    first: Tensor  # the largest value
    second: Tensor  # the next one, as large if two senders have the largest; 0 if only one sender has the feature
    sender: Tensor  # a node that sends the largest value


@dataclass(frozen=True, kw_only=True)
class SparseMaximum:
    """A :class:`~glasshouse.graph.rule.toggle.layers.maximum.Maximum` layer over sparse features.

    Args:
        dense: the layer.
        features: what it reads.
        entries: features that a node's senders have, on average.
    """

    dense: Maximum
    features: SparseRows
    entries: int
    divides_by_degree: bool = False
    counts_senders: bool = False
    hops: int = 1

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return self.dense.width

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        models, _, out = self.dense.weight.shape
        size = self.dense.weight.element_size()
        each = -(-len(self.features.column) // (len(self.features.start) - 1))
        return Cost(
            node=self.entries * (16 + 2 * size) + 2 * models * out * size,
            row=3 * models * out * size,
            path=32 + 2 * each * _ENTRY_BYTES,
        )

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptSparseMaximum, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`; the inputs are the features that it has."""
        models, _, out = self.dense.weight.shape
        cost = self.features.count.repeat(len(graph.members) // graph.size)
        owner = torch.repeat_interleave(graph.sources.count)
        cost = cost + torch.zeros_like(cost).index_add_(0, owner, cost[graph.sources.other])
        parts = [_rank(self.features, graph, part) for part in slices_within(cost * _ENTRY_BYTES, limit)]
        ranked = Ranked(*(torch.cat(part) for part in zip(*parts, strict=True)))
        node = ranked.key // self.features.width
        start = starts_of(node, len(graph.members))
        weight = flat(self.dense.weight)
        rows = bag_sum(weight, ranked.key - node * self.features.width, start, ranked.first)
        root = self.features.times(self.dense.root) if self.dense.root is not None else rows.new_zeros(1, 1)
        root = root if self.dense.bias is None else root + self.dense.bias.reshape(1, -1)
        rows += root if len(root) == 1 else under_every_mask(root, graph)
        kept = KeptSparseMaximum(layer=self, graph=graph, ranked=ranked, rows=rows, weight=weight)
        return kept, rows.view(-1, models, out).clone()


@dataclass(frozen=True, kw_only=True)
class KeptSparseMaximum:
    """A sparse maximum layer's state: the ranking, outputs [N, models * out] and weight [width, models * out]."""

    layer: SparseMaximum
    graph: MaskedGraph
    ranked: Ranked
    rows: Tensor
    weight: Tensor

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`; inputs are features, which do not change."""
        ball, source, paths = rings.balls[outer], rings.balls[inner], rings.paths(inner, outer)
        features, removes = self.layer.features, rings.removes
        is_target = torch.zeros_like(source.node, dtype=torch.bool)
        is_target[source.centre] = True
        path = is_target[paths.source].nonzero().squeeze(1)  # only a target's messages come or go
        sender, receiver = paths.source[path], paths.receiver[path]
        node = source.node[sender] % self.graph.size
        entry, owner = expand(features.start[node], features.count[node])
        row = receiver[owner]
        place, found = lookup(self.ranked.key, ball.node[row] * features.width + features.column[entry])
        first, second, leader = (part[place] if len(part) else part.new_zeros(len(place)) for part in self.ranked[1:])
        before = torch.where(found, first, 0)
        lost = torch.where(found & (leader == source.node[sender][owner]), second, before)
        gone = removes[source.target[sender]][owner]
        change = torch.where(gone, lost, torch.maximum(before, features.value[entry])) - before
        some = change.nonzero().squeeze(1)
        row = row[some]
        start = starts_of(row, len(ball.node))
        rows = self.rows[ball.node] + bag_sum(self.weight, features.column[entry[some]], start, change[some])
        alive = start.diff() > 0
        alive[ball.centre] = True
        models, _, out = self.layer.dense.weight.shape
        return Toggled(rows.view(-1, models, out), alive)


def _rank(features: SparseRows, graph: MaskedGraph, part: slice) -> Ranked:
    """The ranking for consecutive nodes of the union."""
    rows = torch.arange(part.start, part.stop, device=features.column.device)
    entry, owner = expand(graph.sources.start[rows], graph.sources.count[rows])
    looped = rows[graph.loops[rows] > 0]  # a self-loop makes a node its own sender
    receiver, sender = torch.cat([rows[owner], looped]), torch.cat([graph.sources.other[entry], looped])
    node = sender % graph.size
    entry, owner = expand(features.start[node], features.count[node])
    value, key = features.value[entry], receiver[owner] * features.width + features.column[entry]
    order = value.argsort(descending=True, stable=True)
    order = order[key[order].argsort(stable=True)]
    key, value = key[order], value[order]
    new = torch.ones_like(key, dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    first = new.nonzero().squeeze(1)
    following = (first + 1).clamp(max=len(key) - 1)
    second = torch.where((first + 1 < len(key)) & ~new[following], value[following], 0)
    return Ranked(key=key[first], first=value[first], second=second, sender=sender[owner[order[first]]])
