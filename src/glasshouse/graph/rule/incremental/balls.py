"""Which rows change when a node is toggled: nested balls around the targets, and the paths between them.

For a target v, ball k holds v and every member that v reaches in at most k hops through members. The rows that a
layer changes, and the messages that change them, are the same for all models, so all share one set of index arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.segments import expand, lookup, starts_of
from glasshouse.graph.rule.incremental.triton_balls import senders_within

_SPARSE = 16  # places of a table for each pair that is looked up in it, at most


@dataclass(frozen=True, kw_only=True)
class Ball:
    """Pairs (target, node), sorted: one row for each node whose value may change when the target is toggled.

    The target itself always has a row, ``centre``. For a target that is a member, toggling removes it: its row is
    then a placeholder, computed like the others and never read.
    """

    keys: Tensor  # [rows], target * N + node, ascending
    target: Tensor  # [rows], index into the targets
    node: Tensor  # [rows], node in the union of masks
    centre: Tensor  # [targets], the row of each target itself
    degree_change: Tensor  # [rows], how much the toggle changes the number of messages that the node receives

    def only(self, rows: Tensor) -> Ball:
        """The ball without some rows, bool [rows]; every target's own row must stay."""
        place = rows.nonzero().squeeze(1)  # once: a GPU waits for the number of hits of a boolean index at every array
        return Ball(
            keys=self.keys[place],
            target=self.target[place],
            node=self.node[place],
            centre=(rows.cumsum(0) - 1)[self.centre],
            degree_change=self.degree_change[place],
        )


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Messages from the rows of an inner ball to the rows of an outer one, sorted by receiver row.

    Those into one row are in the order of its list of senders, so that both lists can be walked along together; an
    added target, which is in no list of senders, may stand anywhere among them.
    """

    source: Tensor  # [paths], row of the inner ball
    start: Tensor  # [outer rows + 1], where each receiver's paths start
    weight: Tensor  # [paths], how often the edge occurs
    inside: Tensor  # [inner rows], the row in the outer ball of the same pair

    @property
    def receiver(self) -> Tensor:
        """[paths], row of the outer ball."""
        return torch.repeat_interleave(self.start.diff(), output_size=len(self.source))


@dataclass(kw_only=True)
class Rings:
    """Where changes go, for a chunk of targets."""

    graph: MaskedGraph
    targets: Tensor  # [targets], nodes in the union
    removes: Tensor  # bool [targets]: the target is a member, so toggling removes it
    balls: list[Ball]  # ball 0 (the target alone) to ball R
    outward: list[Paths]  # from ball k to ball k + 1
    splits: ClassVar[bool] = True  # whether rows with common senders may come in several queries, by what they may see

    @cached_property
    def around(self) -> Paths:
        """From the outermost ball to itself; drawn if a layer needs them."""
        return _paths_within(self)

    def paths(self, inner: int, outer: int) -> Paths:
        """Paths from one ball to the next, or from the outermost one to itself."""
        if outer == inner + 1:
            return self.outward[inner]
        if not inner == outer == len(self.balls) - 1:
            raise LookupError(f"no paths are drawn from ball {inner} to ball {outer}")
        return self.around

    def places(self, inner: int, outer: int) -> Tensor:
        """The rows of a ball that hold the pairs of one within it."""
        place = torch.arange(len(self.balls[inner].keys), device=self.targets.device)
        for paths in self.outward[inner:outer]:
            place = paths.inside[place]
        return place

    def gone(self, sender: Tensor, receiver: Tensor) -> Tensor:
        """Whether toggling takes messages away, bool [messages]; senders and receivers are keys as those of balls."""
        size = len(self.graph.members)
        return lookup(self.removes.nonzero().squeeze(1) * size + self.targets[self.removes], sender)[1]

    def added(self) -> tuple[Tensor, Tensor]:
        """Keys of senders and receivers of the messages that toggling adds; no list of senders contains them."""
        size, receivers = len(self.graph.members), self.graph.receivers
        added = (~self.removes).nonzero().squeeze(1)
        entry, owner = expand(receivers.start[self.targets[added]], receivers.count[self.targets[added]])
        return (added * size + self.targets[added])[owner], added[owner] * size + receivers.other[entry]


@dataclass(frozen=True)
class Step:
    """One layer of a toggle: from the changed rows of an inner ball to the rows of an outer one."""

    rings: Rings
    inner: int
    outer: int

    @property
    def source(self) -> Ball:
        """The inner ball."""
        return self.rings.balls[self.inner]

    @property
    def ball(self) -> Ball:
        """The outer ball."""
        return self.rings.balls[self.outer]

    @property
    def paths(self) -> Paths:
        """From the inner ball to the outer one."""
        return self.rings.paths(self.inner, self.outer)

    @cached_property
    def kind(self) -> Tensor:
        """Int32 [inner rows]: 1 for a removed target, 2 for an added one, else 0."""
        kind = torch.zeros_like(self.source.node, dtype=torch.int32)
        kind[self.source.centre] = 2 - self.rings.removes.to(torch.int32)
        return kind

    @cached_property
    def inner_row(self) -> Tensor:
        """The row of the inner ball that holds the same pair, for each row of the outer one, or -1."""
        inside, found = self.paths.inside, torch.full_like(self.ball.node, -1)
        found[inside] = torch.arange(len(inside), device=inside.device)
        return found


def draw_rings(graph: MaskedGraph, targets: Tensor, *, radius: int) -> Rings:
    """Balls 0 ... radius of the targets [targets] (nodes in the union), with all paths outward."""
    every = torch.arange(len(targets), device=targets.device)
    alone = Ball(
        keys=every * len(graph.members) + targets,
        target=every,
        node=targets,
        centre=every,
        degree_change=graph.degree.new_zeros(len(targets)),
    )
    rings = Rings(graph=graph, targets=targets, removes=graph.members[targets], balls=[alone], outward=[])
    for _ in range(radius):
        add_ring(rings)
    return rings


def add_ring(rings: Rings) -> None:
    """Draw the next ball around the outermost one, and the paths to it.

    One sort gives both the distinct rows and the order of the paths.
    """
    graph, ball, first = rings.graph, rings.balls[-1], len(rings.balls) == 1
    size, inner = len(graph.members), len(ball.keys)
    entry, source = expand(graph.receivers.start[ball.node], graph.receivers.count[ball.node])
    keys = ball.target[source] * size + graph.receivers.other[entry]
    weight = graph.receivers.weight[entry]
    if not first:  # an added target also receives, although it is not a member
        back_key, back_source, back_weight = _paths_to_added(rings)
        keys, source = torch.cat([keys, back_key]), torch.cat([source, back_source])
        weight = torch.cat([weight, back_weight])
    paths = len(keys)
    ordered, order = torch.cat([keys, ball.keys]).sort(stable=True)
    row = torch.zeros_like(ordered)
    torch.cumsum(ordered[1:] != ordered[:-1], 0, out=row[1:])
    # Rows of the ball and paths are told apart by scattering, with a spare last place for the others: a boolean
    # index would make a GPU wait for the number of hits, which is known here.
    is_path = order < paths
    inside = row.new_empty(inner + 1)
    inside[torch.where(is_path, inner, order - paths)] = row
    inside = inside[:-1]
    place = torch.where(is_path, is_path.cumsum(0) - 1, paths)
    path_row, path = row.new_empty(2, paths + 1)
    path_row[place], path[place] = row, order
    path_row, path = path_row[:-1], path[:-1]
    new_keys = ordered.new_empty(int(row[-1]) + 1 if len(row) else 0)
    new_keys[row] = ordered
    start = starts_of(path_row, len(new_keys))
    result = Paths(source=source[path], start=start, weight=weight[path], inside=inside)
    change = graph.degree.new_zeros(len(new_keys))
    if first:  # ball 0: the paths just found are the target's own messages
        sign = 1 - 2 * rings.removes[result.source].to(change.dtype)
        change[path_row] = sign * result.weight
    else:
        change[inside] = ball.degree_change
    target = new_keys // size
    grown = Ball(
        keys=new_keys,
        target=target,
        node=new_keys - target * size,
        centre=inside[ball.centre],
        degree_change=change,
    )
    rings.balls.append(grown)
    rings.outward.append(result)


def _paths_to_added(rings: Rings) -> tuple[Tensor, Tensor, Tensor]:
    """Paths from rows of the outermost ball to added targets: keys of the receiving rows, source rows and weights."""
    graph, ball, targets, size = rings.graph, rings.balls[-1], rings.targets, len(rings.graph.members)
    count = torch.where(rings.removes, 0, graph.sources.count[targets])
    entry, target = expand(graph.sources.start[targets], count)
    source, found = lookup(ball.keys, target * size + graph.sources.other[entry])
    found = found.nonzero().squeeze(1)
    target = target[found]
    return target * size + targets[target], source[found], graph.sources.weight[entry[found]]


def _paths_within(rings: Rings) -> Paths:
    """Paths between rows of the outermost ball."""
    graph, ball, removes, size = rings.graph, rings.balls[-1], rings.removes, len(rings.graph.members)
    every = torch.arange(len(ball.keys), device=ball.keys.device)
    if triton.usable(ball.node):  # without arrays of all the senders that are not in the ball
        added = (ball.degree_change > 0) & ~removes[ball.target]  # rows to which an added target sends, by its weight
        source, weight, start = senders_within(
            graph.sources,
            ball.node,
            ball.target,
            starts_of(ball.target, len(removes)),
            torch.where(added, ball.centre[ball.target], -1),
            ball.degree_change,
        )
        return Paths(source=source, start=start, weight=weight, inside=every)
    entry, row = expand(graph.sources.start[ball.node], graph.sources.count[ball.node])
    target, other = ball.target[row], graph.sources.other[entry]
    places = len(ball.centre) * graph.size
    if places <= _SPARSE * len(row):  # a table of all nodes under each target's mask takes less time than a search
        table = torch.full((places,), -1, dtype=torch.int32, device=row.device)
        table[ball.target * graph.size + ball.node % graph.size] = every.to(torch.int32)
        source = table[target * graph.size + other % graph.size].long()
        found = source >= 0
    else:
        source, found = lookup(ball.keys, target * size + other)
    source, row, weight = source[found], row[found], graph.sources.weight[entry[found]]
    # An added target is not a member, so no list of sources contains it: its own messages come from ball 0's paths.
    own = rings.outward[0]
    added = (~removes[own.source]).nonzero().squeeze(1)
    own_row, own_weight = own.receiver[added], own.weight[added]
    for paths in rings.outward[1:]:
        own_row = paths.inside[own_row]
    row, order = torch.cat([row, own_row]).sort(stable=True)
    return Paths(
        source=torch.cat([source, ball.centre[own.source[added]]])[order],
        start=starts_of(row, len(ball.keys)),
        weight=torch.cat([weight, own_weight])[order],
        inside=every,
    )
