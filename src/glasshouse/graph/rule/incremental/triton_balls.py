"""Which senders of each row of a ball are in the ball too: a search in the target's own part of the ball."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental.graph import Adjacency
from glasshouse.graph.rule.incremental.triton import kernel

tl: Any = None  # triton.language, filled in by the first launch
_BLOCK = 32  # senders that are searched for at once


@kernel
def _search(  # type: ignore[no-untyped-def]
    found,
    count,
    offset,
    node,
    target,
    bounds,
    first,
    other,
    steps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    here, whose = tl.load(node + row), tl.load(target + row)
    low, high = tl.load(bounds + whose), tl.load(bounds + whose + 1)
    start, senders, out = tl.load(first + here), tl.load(first + here + 1), tl.load(offset + row)
    total = 0
    for at in range(start, senders, BLOCK):
        place = at + tl.arange(0, BLOCK)
        live = place < senders
        wanted = tl.load(other + place, mask=live, other=-1)
        left = low + tl.zeros([BLOCK], tl.int64)
        right = high + tl.zeros([BLOCK], tl.int64)
        for _ in range(steps):  # one more than the logarithm of the longest part
            middle = (left + right) // 2
            less = (tl.load(node + middle, mask=left < right, other=0) < wanted) & (left < right)
            right = tl.where(less, right, middle)
            left = tl.where(less, middle + 1, left)
        hit = live & (left < high)
        hit = hit & (tl.load(node + left, mask=hit, other=-2) == wanted)
        tl.store(found + out + place - start, tl.where(hit, left, -1).to(tl.int32), mask=live)
        total += tl.sum(hit.to(tl.int32), axis=0)
    tl.store(count + row, total)


@kernel
def _collect(  # type: ignore[no-untyped-def]
    source,
    strength,
    begin,
    found,
    offset,
    node,
    first,
    weight,
    extra,
    extra_weight,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    here = tl.load(node + row)
    start, senders, at_found = tl.load(first + here), tl.load(first + here + 1), tl.load(offset + row)
    out = tl.load(begin + row)
    for at in range(start, senders, BLOCK):
        place = at + tl.arange(0, BLOCK)
        live = place < senders
        position = tl.load(found + at_found + place - start, mask=live, other=-1)
        hit = position >= 0
        seat = out + tl.cumsum(hit.to(tl.int32), axis=0) - 1
        tl.store(source + seat, position.to(tl.int64), mask=hit)
        tl.store(strength + seat, tl.load(weight + place, mask=hit, other=0.0), mask=hit)
        out += tl.sum(hit.to(tl.int32), axis=0)
    sender = tl.load(extra + row)
    if sender >= 0:
        tl.store(source + out, sender)
        tl.store(strength + out, tl.load(extra_weight + row))


def senders_within(
    sources: Adjacency, node: Tensor, target: Tensor, bounds: Tensor, extra: Tensor, extra_weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """For each row of a ball, its senders' rows in the ball [paths], their weights [paths] and starts [rows + 1].

    Args:
        sources: for any node the members that send to it.
        node: node of each row, ascending for each target.
        target: target of each row, ascending.
        bounds: where each target's rows start, [targets + 1].
        extra: a further sender of each row, which comes last, or -1.
        extra_weight: its weight, [rows].
    """
    many = sources.count[node]
    offset = many.cumsum(0) - many
    found = torch.empty(int(many.sum()), dtype=torch.int32, device=node.device)
    count = torch.empty(len(node), dtype=torch.int32, device=node.device)
    steps = int(bounds.diff().max()).bit_length() + 1 if len(bounds) > 1 else 0
    _search.launch(
        len(node),
        *(found, count, offset, node, target, bounds, sources.start, sources.other, steps),
        warps=1,
        BLOCK=_BLOCK,
    )
    start = torch.zeros(len(node) + 1, dtype=torch.long, device=node.device)
    torch.cumsum(count.long() + (extra >= 0), 0, out=start[1:])
    source = torch.empty(int(start[-1]), dtype=torch.long, device=node.device)
    strength = sources.weight.new_empty(len(source))
    _collect.launch(
        len(node),
        *(source, strength, start, found, offset, node, sources.start, sources.weight, extra, extra_weight),
        warps=1,
        BLOCK=_BLOCK,
    )
    return source, strength, start
