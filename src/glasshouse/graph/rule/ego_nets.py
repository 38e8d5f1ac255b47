"""Ego-nets of toggled targets: for some rows, everything that they see, as one disjoint union."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Rings
from glasshouse.graph.rule.incremental.segments import distinct, expand, lookup, slices_within, starts_of


@dataclass(frozen=True, kw_only=True)
class EgoNets:
    """Toggled ego-nets of some targets, sorted by target."""

    target: Tensor  # [rows]
    node: Tensor  # [rows], node in the union of masks
    edges: Tensor  # [2, edges], rows, sorted by target
    edge_target: Tensor  # [edges]
    edge_number: Tensor  # [edges], which edge of the graph it is a copy of
    spare: int  # how many rows at the end stand in for senders that only count

    def parts(self, targets: slice, *, each: int, limit: float) -> Iterator[tuple[slice, EgoNets]]:
        """Disjoint nets of consecutive targets in parts of whole nets, with ``each`` bytes for every row and edge."""
        rows, count = len(self.target) - self.spare, targets.stop - targets.start
        starts = [starts_of(owner - targets.start, count) for owner in (self.target[:rows], self.edge_target)]
        row_start, edge_start = (start.tolist() for start in starts)
        for part in slices_within((starts[0].diff() + starts[1].diff()) * each, limit):
            first, last = row_start[part.start], row_start[part.stop]
            edges = slice(edge_start[part.start], edge_start[part.stop])
            ends = self.edges[:, edges]
            yield (
                slice(targets.start + part.start, targets.start + part.stop),
                EgoNets(
                    target=torch.cat([self.target[first:last], self.target[rows:]]),
                    node=torch.cat([self.node[first:last], self.node[rows:]]),
                    edges=torch.where(ends < rows, ends - first, ends - rows + last - first),
                    edge_target=self.edge_target[edges],
                    edge_number=self.edge_number[edges],
                    spare=self.spare,
                ),
            )


def draw_ego_nets(
    rings: Rings,
    wanted: Tensor,
    *,
    hops: int,
    degrees: int = 1,
    counted: bool = False,
    own: Tensor | None = None,
) -> EgoNets:
    """Everything that the wanted rows can see: their senders up to ``hops`` steps back, and those senders' degrees.

    Args:
        rings: what is toggled, in a union of masks with N nodes.
        wanted: sorted keys target * N + node.
        hops: steps back.
        degrees: further steps: with 1 the outermost senders get all their messages, so that their degrees are right;
            with 2 they also send all their messages, if all edges go both ways.
        counted: whether it is enough that these messages are as many as they should be: their senders are then not
            drawn, and rows at the end stand in for them, which receive nothing and whose ``target`` is one more than
            the number of targets. All nets use the same ones. The senders of one row have one stand-in each: a layer
            may merge repeated edges, and one that replaces self-loops must not see any that are not there.
        own: sorted keys of the rows that a target must have for itself, since their values or degrees differ from those
            under the mask. Other senders get one row for all targets, whose ``target`` is the number of targets; None
            for disjoint nets. Only for one hop, and for layers that do not count what a sender sends.
    """
    graph, targets = rings.graph, len(rings.targets)
    size, sources = len(graph.members), graph.sources
    added_from, added_to = rings.added()
    keys = wanted
    for turn in range(hops + degrees):
        inner = keys
        entry, owner = expand(sources.start[inner % size], sources.count[inner % size])
        sender, receiver = inner[owner] // size * size + sources.other[entry], inner[owner]
        present = (~rings.gone(sender, receiver)).nonzero().squeeze(1)
        _, seen = lookup(inner, added_to)
        sender = torch.cat([sender[present], added_from[seen]])
        receiver = torch.cat([receiver[present], added_to[seen]])
        if own is not None:
            _, differs = lookup(own, sender)
            sender = torch.where(differs, sender, targets * size + sender % size)
        if turn < hops or not counted:
            keys = distinct(torch.cat([inner, sender]))
    # the net needs no more messages than those of the last round: those into the outermost senders change nothing
    looped = inner[graph.loops[inner % size] > 0]
    sender, receiver = torch.cat([sender, looped]), torch.cat([receiver, looped])
    if degrees > 1:  # an edge to a removed target would count among those of its sender
        there = ~rings.gone(receiver, sender)
        sender, receiver = sender[there], receiver[there]
    receiver, order = receiver.sort(stable=True)
    sender = sender[order]
    place, drawn = lookup(keys, sender)
    others = (~drawn).cumsum(0)  # how many senders so far have no row
    before = (others - (~drawn).long())[torch.searchsorted(receiver, receiver)]  # so many when this receiver began
    place = torch.where(drawn, place, len(keys) + others - before - 1)
    spare = int((others - before).max()) if counted and len(others) else 0
    number, pair = graph.copies.between(sender % size % graph.size, receiver % size % graph.size)  # duplicates stay
    received = torch.searchsorted(keys, receiver)
    keys = torch.cat([keys, (targets + 1) * size + torch.arange(spare, device=keys.device)])
    return EgoNets(
        target=keys // size,
        node=keys % size,
        edges=torch.stack([place, received])[:, pair],
        edge_target=(receiver // size)[pair],
        edge_number=number,
        spare=spare,
    )
