"""GraphSAGE-max: the largest senders of each value are kept, so that some can be removed exactly.

Over sparse features, such as bags of words, only non-zero features are ranked and toggled: the largest value of a
feature among a node's senders is 0 unless a sender has it, so no array of nodes by features is ever made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from glasshouse.graph.programs.rows import project
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.balls import Paths, Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.layer import Cost, Layer, Toggled, under_every_mask
from glasshouse.graph.rule.incremental.segments import (
    SparseRows,
    bag_sum,
    expand,
    flat,
    lookup,
    slices_within,
    sparse_rows,
    starts_of,
)
from glasshouse.graph.rule.incremental.triton_maximum import plain_maxima, ranked_senders, toggled_maxima


@dataclass(frozen=True, kw_only=True)
class Largest:
    """Maxima of every node's senders; ties are kept by multiplicity, so the second largest may equal the first."""

    graph: MaskedGraph  # a self-loop makes a node its own sender
    value: Tensor  # [N, values], the maxima, -inf for a node without senders
    sender: Tensor  # int32 [ranks, N, values], the nodes with the largest values, in order; -1 if there are fewer


def find_largest(values: Tensor, graph: MaskedGraph, *, ranks: int, limit: int) -> Largest:
    """The ``ranks`` largest senders of each node, for values [N, values]."""
    if triton.usable(values):
        value, sender = ranked_senders(values, graph, ranks=ranks)
        return Largest(graph=graph, value=value, sender=sender)
    count = graph.sources.count + (graph.loops > 0)
    value = values.new_full(values.shape, -torch.inf)
    sender = torch.full((ranks, *values.shape), -1, dtype=torch.int32, device=values.device)
    order = count.argsort()
    ordered = count[order]
    first, longest = int((ordered == 0).sum()), int(ordered[-1]) if len(ordered) else 0
    width = 1
    while first < len(order):  # rows with up to 1, 2, 4, 8 ... senders are padded to the same length
        last = int(torch.searchsorted(ordered, width, right=True))
        rows = order[first:last]
        bytes_each = width * values.shape[1] * (values.element_size() + 8)
        for part in slices_within(torch.full((len(rows),), bytes_each, device=rows.device), limit):
            _rank(values, graph, rows[part], min(width, longest), value, sender)
        first, width = last, 2 * width
    return Largest(graph=graph, value=value, sender=sender)


def _rank(values: Tensor, graph: MaskedGraph, rows: Tensor, width: int, value: Tensor, sender: Tensor) -> None:
    """Fill in the largest senders of rows that have at most ``width`` of them."""
    count, looped = graph.sources.count[rows].unsqueeze(1), (graph.loops[rows] > 0).unsqueeze(1)
    column = torch.arange(width, device=rows.device).unsqueeze(0)
    entry = (graph.sources.start[rows].unsqueeze(1) + column).clamp_(max=max(len(graph.sources.other) - 1, 0))
    listed = graph.sources.other[entry] if len(graph.sources.other) else entry
    who = torch.where(column < count, listed, torch.where((column == count) & looped, rows.unsqueeze(1), -1))
    seen = values[who.clamp(min=0)].masked_fill_((who < 0).unsqueeze(2), -torch.inf)  # [rows, width, values]
    for rank in range(min(len(sender), width)):
        best, position = seen.max(dim=1)
        if rank == 0:
            value[rows] = best
        sender[rank, rows] = who.gather(1, position).to(torch.int32).masked_fill_(best == -torch.inf, -1)
        if rank + 1 < min(len(sender), width):
            seen.scatter_(1, position.unsqueeze(1), -torch.inf)


def _bag_max(table: Tensor, index: Tensor, paths: Paths, *, without: Tensor) -> Tensor:
    """Maxima over the paths into each outer row, [outer rows, values], -inf if there is none.

    Inner rows have their values at ``index`` [inner rows] of the table; those in ``without`` are left out.
    """
    start, source = paths.start, paths.source
    if bool(without.any()):
        live = ~without[source]
        start, source = starts_of(paths.receiver[live], len(start) - 1), source[live]
    if len(source) == 0:
        return table.new_full((len(start) - 1, table.shape[1]), -torch.inf)
    maxima = torch.nn.functional.embedding_bag(index[source], table, start, mode="max", include_last_offset=True)
    maxima[(start.diff() == 0).nonzero().squeeze(1)] = -torch.inf  # an empty bag gives 0
    return maxima


_RANKS = 4  # senders kept for each value; beyond them a value is looked up among all senders


@dataclass(frozen=True, kw_only=True)
class Maximum(Layer):
    """``weight * max over senders of their inputs + root * own input + bias``; a maximum without senders is 0."""

    weight: Tensor  # [models, width, out]
    root: Tensor | None  # likewise
    bias: Tensor | None  # [models, out]

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return int(self.weight.shape[2])

    def deciding(self, *, shared: bool) -> float:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`: one for each value."""
        models, width, _ = self.weight.shape
        return (1 if shared else models) * width

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        models, width, out = self.weight.shape
        size = self.weight.element_size()
        values = (1 if shared else models) * width
        ranks = 2 if shared else _RANKS
        return Cost(
            node=values * (2 * size + 4 * ranks) + models * out * size,
            # a kernel writes the new maxima alone; torch has several copies, and positions that a maximum reports
            row=values * (2 * size if triton.usable(self.weight) else 5 * size + 16) + models * out * 3 * size,
            path=32,
        )

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptMaximum, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        inputs = under_every_mask(inputs, graph)
        values = inputs.reshape(len(inputs), -1)
        # the first layer can lose only one sender, the target; later ones may lose several at once
        largest = find_largest(values, graph, ranks=2 if inputs.shape[1] == 1 else _RANKS, limit=limit)
        kept = KeptMaximum(layer=self, values=values, largest=largest, root=self._root(inputs), limit=limit)
        return kept, self.combine(largest.value.clone(), kept.root)

    def outputs(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> Tensor:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`: without the senders after the largest."""
        root = self._root(inputs)  # of features once, not under each mask
        values = under_every_mask(inputs, graph)
        values = values.reshape(len(values), -1)
        if triton.usable(values):
            maxima = plain_maxima(values, graph)
        else:
            maxima = find_largest(values, graph, ranks=1, limit=limit).value
        return self.combine(maxima, root if len(root) == 1 else under_every_mask(root, graph))

    def combine(self, maxima: Tensor, root: Tensor) -> Tensor:
        """Outputs [rows, models, out] from maxima [rows, values], which it may overwrite; -inf without senders."""
        maxima[(maxima[:, 0] == -torch.inf).nonzero().squeeze(1)] = 0
        return project(maxima.view(len(maxima), -1, self.weight.shape[1]), self.weight) + root

    def _root(self, inputs: Tensor) -> Tensor:
        """What a node's own input [rows, models, width] adds to its output, [rows, models, out]."""
        models, _, out = self.weight.shape
        root = inputs.new_zeros(1, models, out) if self.root is None else project(inputs, self.root)
        return root if self.bias is None else root + self.bias


@dataclass(frozen=True, kw_only=True)
class KeptMaximum:
    """A maximum layer's state: inputs [N, values], their largest senders, and what the root adds [N, models, out]."""

    layer: Maximum
    values: Tensor
    largest: Largest
    root: Tensor
    limit: int

    def toggle(self, changed: Tensor | None, step: Step) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`."""
        ball, inside, largest = step.ball, step.paths.inside, self.largest
        table = None if changed is None else changed.reshape(len(changed), -1)
        if triton.usable(self.values):
            maxima, alive = toggled_maxima(self.values, table, largest.value, largest.sender, largest.graph, step)
        else:
            maxima, alive = self._maxima(table, step)
        alive[ball.centre] = True
        if changed is not None:
            alive[inside] = True
        root = self.root if len(self.root) == 1 else self.root[ball.node]
        if changed is not None and self.layer.root is not None:
            root[inside] = self.layer._root(changed)
        return Toggled(self.layer.combine(maxima, root), alive)

    def _maxima(self, changed: Tensor | None, step: Step) -> tuple[Tensor, Tensor]:
        """New maxima of the outer ball [rows, values], and whether each row differs, bool [rows]."""
        source, paths = step.source, step.paths
        table, index = self.values, source.node
        if changed is not None:
            table, index = changed, torch.arange(len(changed), device=changed.device)
        arrived = _bag_max(table, index, paths, without=step.kind == 1)
        left = _bag_max(self.values, source.node, paths, without=step.kind == 2)
        looped = (self.largest.graph.loops[source.node] > 0).nonzero().squeeze(1)
        if len(looped):  # a node with a self-loop is its own sender
            row = paths.inside[looped]
            arrived[row] = torch.maximum(arrived[row], table[index[looped]])
            left[row] = torch.maximum(left[row], self.values[source.node[looped]])
        before = self.largest.value[step.ball.node]
        # if a changed sender had the maximum and nothing new reaches it, the next largest has to be found
        lost = (left >= before) & (arrived < before)
        maxima = torch.maximum(before, arrived, out=left)
        row, column = lost.nonzero(as_tuple=True)
        if len(row):
            maxima[row, column] = torch.maximum(self._others(step, row, column), arrived[row, column])
        # most maxima do not depend on one sender, and then nothing changes; a target itself is added or removed
        return maxima, (maxima != before).any(dim=1)

    def _others(self, step: Step, row: Tensor, column: Tensor) -> Tensor:
        """The largest value among senders outside the source ball, for single entries of the outer ball, [entries]."""
        values, ball, source, graph = self.values, step.ball, step.source, self.largest.graph
        nodes, sources = len(values), graph.sources
        answer = values.new_full((len(row),), -torch.inf)
        open_entries = torch.arange(len(row), device=row.device)
        for ranking in self.largest.sender:
            where, what = row[open_entries], column[open_entries]
            sender = ranking[ball.node[where], what].long()
            _, blocked = lookup(source.keys, ball.target[where] * nodes + sender)
            found = (sender >= 0) & ~blocked
            answer[open_entries[found]] = values[sender[found], what[found]]
            open_entries = open_entries[(sender >= 0) & blocked]
            if len(open_entries) == 0:
                return answer
        senders = sources.count[ball.node[row[open_entries]]]
        for part in slices_within((senders + 1) * 64, self.limit):
            some = open_entries[part]
            entry, owner = expand(sources.start[ball.node[row[some]]], senders[part])
            sender, where = sources.other[entry], some[owner]
            _, blocked = lookup(source.keys, ball.target[row[where]] * nodes + sender)
            seen = values[sender, column[where]].masked_fill_(blocked, -torch.inf)
            best = values.new_full((len(some),), -torch.inf).scatter_reduce_(0, owner, seen, "amax")
            # a self-loop of a row outside the source ball is a sender too
            node = ball.node[row[some]]
            _, blocked = lookup(source.keys, ball.target[row[some]] * nodes + node)
            itself = values[node, column[some]].masked_fill_(blocked | (graph.loops[node] == 0), -torch.inf)
            answer[some] = torch.maximum(best, itself)
        return answer


_MOST = 0.05  # share of non-zero features up to which lists are faster than arrays
_ENTRY_BYTES = 120  # while entries are sorted, or looked up


def for_features(layer: Layer, x: Tensor, edge_index: Tensor) -> Layer:
    """The form of a first layer that suits the features [n, width]: sparse where that is possible and faster."""
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
class SparseMaximum(Layer):
    """A :class:`~glasshouse.graph.rule.incremental.maximum.Maximum` layer over sparse features."""

    dense: Maximum
    features: SparseRows  # what it reads
    entries: int  # features that a node's senders have, on average

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return self.dense.width

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        models, _, out = self.dense.weight.shape
        size = self.dense.weight.element_size()
        each = -(-len(self.features.column) // (len(self.features.start) - 1))
        return Cost(
            node=self.entries * (16 + 2 * size) + 2 * models * out * size,
            row=3 * models * out * size,
            path=32 + 2 * each * _ENTRY_BYTES,
        )

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptSparseMaximum, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`; the inputs are the features that it has."""
        models, _, out = self.dense.weight.shape
        cost = self.features.count.repeat(len(graph.members) // graph.size)
        owner = torch.repeat_interleave(graph.sources.count)
        cost = cost + torch.zeros_like(cost).index_add_(0, owner, cost[graph.sources.other])
        parts = [_rank_sparse(self.features, graph, part) for part in slices_within(cost * _ENTRY_BYTES, limit)]
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

    def toggle(self, changed: Tensor | None, step: Step) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`; inputs are features, which do not change."""
        ball, source, paths, features = step.ball, step.source, step.paths, self.layer.features
        path = (step.kind > 0)[paths.source].nonzero().squeeze(1)  # only a target's messages come or go
        sender, receiver = paths.source[path], paths.receiver[path]
        node = source.node[sender] % self.graph.size
        entry, owner = expand(features.start[node], features.count[node])
        row = receiver[owner]
        place, found = lookup(self.ranked.key, ball.node[row] * features.width + features.column[entry])
        first, second, leader = (part[place] if len(part) else part.new_zeros(len(place)) for part in self.ranked[1:])
        before = torch.where(found, first, 0)
        lost = torch.where(found & (leader == source.node[sender][owner]), second, before)
        gone = (step.kind == 1)[sender][owner]
        change = torch.where(gone, lost, torch.maximum(before, features.value[entry])) - before
        some = change.nonzero().squeeze(1)
        row = row[some]
        start = starts_of(row, len(ball.node))
        rows = self.rows[ball.node] + bag_sum(self.weight, features.column[entry[some]], start, change[some])
        alive = start.diff() > 0
        alive[ball.centre] = True
        models, _, out = self.layer.dense.weight.shape
        return Toggled(rows.view(-1, models, out), alive)


def _rank_sparse(features: SparseRows, graph: MaskedGraph, part: slice) -> Ranked:
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
