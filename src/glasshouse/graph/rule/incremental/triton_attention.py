"""Rows of an attention layer, each in one pass: the softmax over senders is summed as they come.

A value's column belongs to one model, head and channel; every column computes its own head's weights, so that no
program waits for another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.triton import blocks_of, kernel

tl: Any = None  # triton.language, filled in by the first launch
_BLOCK = 128  # columns of one program


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

    Args:
        kept: values and scores of all nodes.
        news: new values and scores of the inner ball; None if they are the kept ones.
        step: balls and paths.
        graph: who sends to whom.
        slope: of the leaky ReLU below zero.
    """
    rows, (_, heads, channels) = len(step.ball.node), kept.values.shape
    out = kept.values.new_empty(rows, heads * channels)
    new = kept if news is None else news
    block, blocks = blocks_of(heads * channels, most=_BLOCK)
    paths, sources = step.paths, graph.sources
    _attended.launch(
        rows * blocks,
        *(out, kept.values, kept.sent, kept.received, new.values, new.sent, new.received),
        *(step.ball.node, step.inner, paths.source, paths.start, paths.weight, step.source.node, step.kind),
        *(sources.start, sources.other, sources.weight, heads * channels, channels, heads, blocks),
        warps=1,
        SLOPE=slope,
        FIRST=news is None,
        BLOCK=block,
    )
    return out
