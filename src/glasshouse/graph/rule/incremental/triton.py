"""Triton kernels, compiled on their first launch: the one place where Triton is hidden from everything else.

Each kernel does in one pass what takes torch many; sums, maxima and attention have its twin in torch. One program makes
the values of one row in one block of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.io.caches import keep_code_private

tl: Any = None  # triton.language, filled in by the first launch
_BLOCK = 128  # columns of one program
_UNIT = 4  # values that a GPU loads in one instruction, where the rows allow it
_SENDERS = 8  # senders that are read at once; one after the other, a hub with thousands would take milliseconds


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def usable(tensor: Tensor) -> bool:
    """Whether the kernels can work on a tensor: it is on a GPU, and Triton is installed."""
    return tensor.is_cuda and _has_triton()


class Kernel:
    """A function that Triton compiles when it is first launched, so that nothing imports Triton without a GPU."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._compiled: Any = None

    def launch(self, rows: int, width: int, *arguments: Any, **constants: Any) -> None:
        """Run the programs of so many rows and columns; the number of blocks of a row is the last argument."""
        block, blocks = blocks_of(width, most=_BLOCK)
        if rows * blocks == 0:
            return
        if self._compiled is None:
            keep_code_private()
            import triton

            self._function.__globals__["tl"] = triton.language  # the name that kernels use
            self._compiled = triton.jit(self._function)
        self._compiled[(rows * blocks,)](*arguments, blocks, num_warps=1, BLOCK=block, **constants)


def kernel(function: Callable[..., None]) -> Kernel:
    """Make a function of pointers and numbers a kernel; its module needs ``tl: Any = None``, which is filled in."""
    return Kernel(function)


def blocks_of(width: int, *, most: int) -> tuple[int, int]:
    """A power of two, at most ``most``, that fills a row of ``width`` values, and how many of them a row needs."""
    block = 1
    while block < min(width, most):
        block *= 2
    return block, -(-width // block)


@kernel
def _rows(  # type: ignore[no-untyped-def]
    out,
    sums,
    gain,
    own,
    rest,
    node,
    inner,
    source,
    start,
    weight,
    scale,
    units,
    rest_units,
    blocks,
    UNIT: tl.constexpr,
    BLOCK: tl.constexpr,
    PATHS: tl.constexpr,
):
    program = tl.program_id(0)
    width, rest_step = units * UNIT, rest_units * UNIT
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    total = tl.load(sums + tl.load(node + row) * width + column, mask=inside, other=0.0)
    first, last = tl.load(start + row), tl.load(start + row + 1)
    for at in range(first, last, PATHS):
        place = at + tl.arange(0, PATHS)
        live = place < last
        sender = tl.load(source + place, mask=live, other=0)
        times = tl.load(weight + place, mask=live, other=0.0)
        tile = tl.load(
            gain + sender[:, None] * width + column[None, :], mask=live[:, None] & inside[None, :], other=0.0
        )
        total += tl.sum(tile * times[:, None], axis=0)
    mine = tl.load(inner + row)
    if mine >= 0:
        total += tl.load(own + mine * width + column, mask=inside, other=0.0)
    total = total * tl.load(scale + row) + tl.load(rest + row * rest_step + column, mask=inside, other=0.0)
    tl.store(out + row * width + column, total, mask=inside)


def paths_at_once(mean: float) -> int:
    """How many messages a program loads at once, for rows with so many on average."""
    return 2 if mean < 2 else 4 if mean < 4 else 8


def summed_rows(
    sums: Tensor, gain: Tensor, own: Tensor, rest: Tensor, step: Step, *, weight: Tensor, scale: Tensor
) -> Tensor:
    """Finished rows ``scale * (sum + over their paths weight * gain + own) + rest``, [outer rows, models * width].

    Sums are those of all nodes [N], gain and own the changes of the inner rows' messages to others and to themselves;
    the rest has as many rows as the scale, [outer rows], or one. Each path has a weight.
    """
    rows, width = len(step.ball.node), sums.shape[1]
    out = sums.new_empty(rows, width)
    unit = _UNIT if width % _UNIT == 0 else 1
    rest = rest.expand(-1, width).contiguous()
    _rows.launch(
        rows,
        width,
        *(out, sums, gain, own, rest, step.ball.node, step.inner, step.paths.source, step.paths.start, weight, scale),
        *(width // unit, width // unit if len(rest) > 1 else 0),
        UNIT=unit,
        PATHS=paths_at_once(len(step.paths.source) / max(rows, 1)),
    )
    return out


@kernel
def _ranks(  # type: ignore[no-untyped-def]
    value, sender, values, start, other, loops, width, size, blocks, RANKS: tl.constexpr, BLOCK: tl.constexpr
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
    _ranks.launch(
        len(values),
        values.shape[1],
        *(value, sender, values, graph.sources.start, graph.sources.other, graph.loops),
        *(values.shape[1], len(values)),
        RANKS=ranks,
    )
    return value, sender


@kernel
def _plain(  # type: ignore[no-untyped-def]
    value, values, start, other, loops, width, blocks, SENDERS: tl.constexpr, BLOCK: tl.constexpr
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
    _plain.launch(
        len(values),
        values.shape[1],
        *(value, values, graph.sources.start, graph.sources.other, graph.loops),
        values.shape[1],
        SENDERS=_SENDERS,
    )
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
    table: Tensor, values: Tensor, value: Tensor, sender: Tensor, graph: MaskedGraph, step: Step, *, first: bool
) -> tuple[Tensor, Tensor]:
    """New maxima [rows, values], -inf for a row without senders, and whether each row differs, bool [rows].

    Kept are the inputs ``values`` and the maxima ``value`` [N, values] with their senders, int32 [ranks, N, values].
    The table has the new inputs [inner rows, values], or is ``values`` where they are the kept ones (``first``).
    """
    rows, width, paths = len(step.ball.node), values.shape[1], step.paths
    out = values.new_empty(rows, width)
    alive = torch.zeros(rows, dtype=torch.int32, device=values.device)
    _toggled.launch(
        rows,
        width,
        *(out, alive, table, values, value, sender),
        *(step.ball.node, paths.source, paths.start, step.source.node, step.kind, step.inner, graph.loops),
        *(graph.sources.start, graph.sources.other, width, len(values)),
        FIRST=first,
        RANKS=len(sender),
    )
    return out, alive > 0


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Values [rows, models * heads, channels], and scores of senders and of receivers [rows, models * heads]."""

    values: Tensor
    sent: Tensor
    received: Tensor


@kernel
def _attended(  # type: ignore[no-untyped-def]
    out,
    values,
    sent,
    received,
    new_values,
    new_sent,
    new_received,
    node,
    inner,
    source,
    start,
    weight,
    source_node,
    kind,
    sender_start,
    other,
    sender_weight,
    width,
    channels,
    heads,
    blocks,
    SLOPE: tl.constexpr,
    FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    head = column // channels
    here, inner_row = tl.load(node + row), tl.load(inner + row)
    own_sent, own_received, own_values, own = sent, received, values, here
    if not FIRST and inner_row >= 0:
        own_sent, own_received, own_values, own = new_sent, new_received, new_values, inner_row
    mine = tl.load(own_received + own * heads + head, mask=inside, other=0.0)
    score = mine + tl.load(own_sent + own * heads + head, mask=inside, other=0.0)
    most = tl.where(score > 0, score, score * SLOPE)  # every node is its own sender
    under = tl.full([BLOCK], 1.0, values.dtype.element_ty)
    over = tl.load(own_values + own * width + column, mask=inside, other=0.0)
    path, last = tl.load(start + row), tl.load(start + row + 1)
    at, end = tl.load(sender_start + here), tl.load(sender_start + here + 1)
    while (at < end) | (path < last):  # senders and paths are in the same order; an added target is a path alone
        from_sent, from_values, which = sent, values, here
        times = tl.load(weight + path, mask=path < last, other=0.0)
        how = 0
        one = path
        changed = at >= end
        if path < last:
            one = tl.load(source + path)
            how = tl.load(kind + one)
            if at < end:
                changed = (how == 2) | (tl.load(source_node + one) == tl.load(other + at))
        if changed:
            which = one
            if FIRST:
                which = tl.load(source_node + one)
            from_sent, from_values = new_sent, new_values
            path += 1
            if how != 2:
                at += 1
        else:
            which, times = tl.load(other + at), tl.load(sender_weight + at)
            at += 1
        if how != 1 or not changed:
            score = mine + tl.load(from_sent + which * heads + head, mask=inside, other=0.0)
            score = tl.where(score > 0, score, score * SLOPE)
            new = tl.maximum(most, score)
            shrink, share = tl.exp(most - new), tl.exp(score - new) * times
            under = under * shrink + share
            over = over * shrink + share * tl.load(from_values + which * width + column, mask=inside, other=0.0)
            most = new
    tl.store(out + row * width + column, over / under, mask=inside)


def attended(kept: Scored, news: Scored | None, step: Step, graph: MaskedGraph, *, slope: float) -> Tensor:
    """Rows of the outer ball from all their senders, [outer rows, models * heads * channels].

    Values and scores are kept for all nodes; ``news`` are those of the inner ball, or None if they are the kept ones.
    """
    rows, (_, heads, channels) = len(step.ball.node), kept.values.shape
    out = kept.values.new_empty(rows, heads * channels)
    new = kept if news is None else news
    paths, sources = step.paths, graph.sources
    _attended.launch(
        rows,
        heads * channels,
        *(out, kept.values, kept.sent, kept.received, new.values, new.sent, new.received),
        *(step.ball.node, step.inner, paths.source, paths.start, paths.weight, step.source.node, step.kind),
        *(sources.start, sources.other, sources.weight, heads * channels, channels, heads),
        SLOPE=slope,
        FIRST=news is None,
    )
    return out
