"""Largest senders and rows of a maximum layer after a toggle, each in one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.triton import kernel

tl: Any = None  # triton.language, filled in by the first launch
_SENDERS = 8  # senders that are read at once; one after the other, a hub with thousands would take milliseconds


@kernel
def _ranks(  # type: ignore[no-untyped-def]
    value,
    sender,
    values,
    start,
    other,
    loops,
    width,
    size,
    blocks,
    RANKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    first, last = tl.load(start + row), tl.load(start + row + 1)
    looped = tl.load(loops + row) > 0
    most0 = tl.full([BLOCK], float("-inf"), values.dtype.element_ty)
    most1, most2, most3 = most0, most0, most0
    who0 = tl.full([BLOCK], -1, tl.int32)
    who1, who2, who3 = who0, who0, who0
    for at in range(first, last + looped.to(tl.int64)):  # a self-loop makes a node its own, last sender
        one = row
        if at < last:
            one = tl.load(other + at)
        seen = tl.load(values + one * width + column, mask=inside, other=0.0)
        name = tl.zeros([BLOCK], tl.int32) + one.to(tl.int32)
        more0, more1, more2, more3 = seen > most0, seen > most1, seen > most2, seen > most3
        if RANKS > 2:
            who3 = tl.where(more2, who2, tl.where(more3, name, who3))
            most3 = tl.where(more2, most2, tl.where(more3, seen, most3))
            who2 = tl.where(more1, who1, tl.where(more2, name, who2))
            most2 = tl.where(more1, most1, tl.where(more2, seen, most2))
        who1 = tl.where(more0, who0, tl.where(more1, name, who1))
        most1 = tl.where(more0, most0, tl.where(more1, seen, most1))
        who0 = tl.where(more0, name, who0)
        most0 = tl.where(more0, seen, most0)
    place = row * width + column
    step = size.to(tl.int64) * width
    tl.store(value + place, most0, mask=inside)
    tl.store(sender + place, who0, mask=inside)
    tl.store(sender + step + place, who1, mask=inside)
    if RANKS > 2:
        tl.store(sender + 2 * step + place, who2, mask=inside)
        tl.store(sender + 3 * step + place, who3, mask=inside)


def ranked_senders(values: Tensor, graph: MaskedGraph, *, ranks: int) -> tuple[Tensor, Tensor]:
    """Maxima [N, values] and the largest senders, int32 [ranks, N, values], for values [N, values] and 2 or 4 ranks."""
    value = torch.empty_like(values)
    sender = torch.empty(ranks, *values.shape, dtype=torch.int32, device=values.device)
    arguments = (value, sender, values, graph.sources.start, graph.sources.other, graph.loops)
    _ranks.launch_rows(*values.shape, *arguments, values.shape[1], len(values), RANKS=ranks)
    return value, sender


@kernel
def _plain(  # type: ignore[no-untyped-def]
    value,
    values,
    start,
    other,
    loops,
    width,
    blocks,
    SENDERS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    first, last = tl.load(start + row), tl.load(start + row + 1)
    most = tl.full([BLOCK], float("-inf"), values.dtype.element_ty)
    for at in range(first, last, SENDERS):
        place = at + tl.arange(0, SENDERS)
        live = place < last
        one = tl.load(other + place, mask=live, other=0)
        where = one[:, None] * width + column[None, :]
        seen = tl.load(values + where, mask=live[:, None] & inside[None, :], other=float("-inf"))
        most = tl.maximum(most, tl.max(seen, axis=0))
    if tl.load(loops + row) > 0:  # a self-loop makes a node its own sender
        most = tl.maximum(most, tl.load(values + row * width + column, mask=inside, other=0.0))
    tl.store(value + row * width + column, most, mask=inside)


def plain_maxima(values: Tensor, graph: MaskedGraph) -> Tensor:
    """Maxima [N, values] of each node's senders, for values [N, values]; -inf for a node without senders."""
    value = torch.empty_like(values)
    arguments = (value, values, graph.sources.start, graph.sources.other, graph.loops)
    _plain.launch_rows(*values.shape, *arguments, values.shape[1], SENDERS=_SENDERS)
    return value


@kernel
def _toggled(  # type: ignore[no-untyped-def]
    out,
    alive,
    table,
    values,
    value,
    sender,
    node,
    source,
    start,
    source_node,
    kind,
    inner,
    loops,
    sender_start,
    other,
    width,
    size,
    blocks,
    FIRST: tl.constexpr,
    RANKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    here, mine = tl.load(node + row), tl.load(inner + row)
    first, last = tl.load(start + row), tl.load(start + row + 1)
    before = tl.load(value + here * width + column, mask=inside, other=0.0)
    arrived = tl.full([BLOCK], float("-inf"), values.dtype.element_ty)
    left = arrived
    for at in range(first, last):
        one = tl.load(source + at)
        name, how = tl.load(source_node + one), tl.load(kind + one)
        which = one
        if FIRST:
            which = name
        if how != 1:  # not a removed target
            arrived = tl.maximum(arrived, tl.load(table + which * width + column, mask=inside, other=0.0))
        if how != 2:  # not an added target
            left = tl.maximum(left, tl.load(values + name * width + column, mask=inside, other=0.0))
    looped = (mine >= 0) & (tl.load(loops + here) > 0)
    if looped:
        which = mine
        if FIRST:
            which = here
        arrived = tl.maximum(arrived, tl.load(table + which * width + column, mask=inside, other=0.0))
        left = tl.maximum(left, tl.load(values + here * width + column, mask=inside, other=0.0))
    lost = (left >= before) & (arrived < before) & inside
    after = tl.maximum(before, arrived)
    if tl.max(lost.to(tl.int32), axis=0) > 0:
        # a changed sender had the maximum and nothing new reaches it: the next one that did not change
        answer = tl.full([BLOCK], float("-inf"), values.dtype.element_ty)
        unknown = lost
        for rank in range(RANKS):
            at_rank = (size.to(tl.int64) * rank + here) * width + column
            who = tl.load(sender + at_rank, mask=unknown, other=-1)
            blocked = looped & (who == here)
            for at in range(first, last):
                blocked = blocked | (who == tl.load(source_node + tl.load(source + at)))
            found = unknown & (who >= 0) & (blocked == 0)
            seen = tl.load(values + who.to(tl.int64) * width + column, mask=found, other=0.0)
            answer = tl.where(found, seen, answer)
            unknown = unknown & (who >= 0) & (blocked != 0)
        if tl.max(unknown.to(tl.int32), axis=0) > 0:
            # all kept ranks changed: every sender that did not; senders and paths are in the same order
            path = first
            for at in range(tl.load(sender_start + here), tl.load(sender_start + here + 1)):
                name = tl.load(other + at)
                # an added target is not in the list of senders
                path += (tl.load(kind + tl.load(source + path, mask=path < last, other=0)) == 2).to(tl.int64) * (
                    path < last
                )
                one = tl.load(source + path, mask=path < last, other=0)
                same = (path < last) & (tl.load(source_node + one) == name)
                if same:
                    path += 1
                else:
                    seen = tl.load(values + name * width + column, mask=unknown, other=0.0)
                    answer = tl.where(unknown, tl.maximum(answer, seen), answer)
            if (mine < 0) & (tl.load(loops + here) > 0):
                seen = tl.load(values + here * width + column, mask=unknown, other=0.0)
                answer = tl.where(unknown, tl.maximum(answer, seen), answer)
        after = tl.where(lost, tl.maximum(answer, arrived), after)
    if tl.max(((after != before) & inside).to(tl.int32), axis=0) > 0:
        tl.store(alive + row, 1)
    tl.store(out + row * width + column, after, mask=inside)


def toggled_maxima(
    values: Tensor, changed: Tensor | None, value: Tensor, sender: Tensor, graph: MaskedGraph, step: Step
) -> tuple[Tensor, Tensor]:
    """New maxima [rows, values], -inf for a row without senders, and whether each row differs, bool [rows].

    Args:
        values: kept inputs [N, values].
        changed: new inputs of the inner ball [inner rows, values]; None if they are the kept ones.
        value: kept maxima [N, values].
        sender: the largest senders, int32 [ranks, N, values].
        graph: who sends to whom.
        step: the balls, and the paths between them.
    """
    node, paths = step.ball.node, step.paths
    rows, width = len(node), values.shape[1]
    out = values.new_empty(rows, width)
    alive = torch.zeros(rows, dtype=torch.int32, device=node.device)
    _toggled.launch_rows(
        *(rows, width),
        *(out, alive, values if changed is None else changed, values, value, sender),
        *(node, paths.source, paths.start, step.source.node, step.kind, step.inner_row, graph.loops),
        *(graph.sources.start, graph.sources.other, width, len(values)),
        FIRST=changed is None,
        RANKS=len(sender),
    )
    return out, alive > 0
