"""Ego-nets of toggled targets: for some rows, everything that they see, as one disjoint union."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.segments import distinct, expand, lookup


@dataclass(frozen=True, kw_only=True)
class EgoNets:
    """Toggled ego-nets of some targets, sorted by target."""

    target: Tensor  # [rows]
    node: Tensor  # [rows], node in the union of masks
    edges: Tensor  # [2, edges], rows, sorted by target
    edge_target: Tensor  # [edges]
    edge_number: Tensor  # [edges], which edge of the graph it is a copy of


def draw_ego_nets(
    graph: MaskedGraph,
    targets: Tensor,
    removes: Tensor,
    wanted: Tensor,
    *,
    hops: int,
    degrees: int = 1,
    counted: bool = False,
    own: Tensor | None = None,
) -> EgoNets:
    """Everything that the wanted rows can see: their senders up to ``hops`` steps back, and those senders' degrees.

    Args:
        graph: the union of masks, N nodes.
        targets: target nodes in the union, [targets].
        removes: True where the toggle removes the target, bool [targets].
        wanted: sorted keys target * N + node; an added target must be among them.
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
    size, sources = len(graph.members), graph.sources
    removed = removes.nonzero().squeeze(1) * size + targets[removes]  # sorted keys of absent rows
    added = (~removes).nonzero().squeeze(1)
    entry, owner = expand(graph.receivers.start[targets[added]], graph.receivers.count[targets[added]])
    added_from = (added * size + targets[added])[owner]  # messages of added targets, which no list of senders contains
    added_to = added[owner] * size + graph.receivers.other[entry]
    keys = wanted
    rounds = hops + degrees
    for turn in range(rounds):
        inner = keys
        entry, owner = expand(sources.start[inner % size], sources.count[inner % size])
        sender = inner[owner] // size * size + sources.other[entry]
        _, absent = lookup(removed, sender)
        present = (~absent).nonzero().squeeze(1)
        sender, receiver = sender[present], inner[owner[present]]
        if own is not None:
            _, differs = lookup(own, sender)
            sender = torch.where(differs, sender, len(targets) * size + sender % size)
        if turn < hops or not counted:
            keys = distinct(torch.cat([inner, sender]))
    # the net needs no more messages than those of the last round: those into the outermost senders change nothing
    _, seen = lookup(inner, added_to)
    looped = inner[graph.loops[inner % size] > 0]
    sender = torch.cat([sender, added_from[seen], looped])
    receiver = torch.cat([receiver, added_to[seen], looped])
    if degrees > 1:  # an edge to a removed target would count among those of its sender
        _, absent = lookup(removed, receiver)
        sender, receiver = sender[~absent], receiver[~absent]
    receiver, order = receiver.sort(stable=True)
    sender = sender[order]
    place, drawn = lookup(keys, sender)
    others = (~drawn).cumsum(0)  # how many senders so far have no row
    before = (others - (~drawn).long())[torch.searchsorted(receiver, receiver)]  # so many when this receiver began
    place = torch.where(drawn, place, len(keys) + others - before - 1)
    spare = int((others - before).max()) if counted and len(others) else 0
    number, pair = graph.copies.between(sender % size % graph.size, receiver % size % graph.size)  # duplicates stay
    received = torch.searchsorted(keys, receiver)
    keys = torch.cat([keys, (len(targets) + 1) * size + torch.arange(spare, device=keys.device)])
    return EgoNets(
        target=keys // size,
        node=keys % size,
        edges=torch.stack([place, received])[:, pair],
        edge_target=(receiver // size)[pair],
        edge_number=number,
    )
