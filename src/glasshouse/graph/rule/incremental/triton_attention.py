"""Rows of an attention layer, each in one pass: the softmax over senders is summed as they come.

A value's column belongs to one model, head and channel; every column computes its own head's weights, so that no
program waits for another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.triton import kernel

tl: Any = None  # triton.language, filled in by the first launch


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Values [rows, models * heads, channels], and scores of senders and of receivers [rows, models * heads]."""

    values: Tensor
    sent: Tensor
    received: Tensor


@kernel
def _keep(  # type: ignore[no-untyped-def]
    highest,
    below,
    above,
    values,
    sent,
    received,
    start,
    other,
    weight,
    width,
    channels,
    heads,
    blocks,
    SLOPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    head = column // channels
    mine = tl.load(received + row * heads + head, mask=inside, other=0.0)
    score = mine + tl.load(sent + row * heads + head, mask=inside, other=0.0)
    most = tl.where(score > 0, score, score * SLOPE)  # every node is its own sender
    under = tl.full([BLOCK], 1.0, values.dtype.element_ty)
    over = tl.load(values + row * width + column, mask=inside, other=0.0)
    for at in range(tl.load(start + row), tl.load(start + row + 1)):
        one = tl.load(other + at)
        score = mine + tl.load(sent + one * heads + head, mask=inside, other=0.0)
        score = tl.where(score > 0, score, score * SLOPE)
        new = tl.maximum(most, score)
        shrink, share = tl.exp(most - new), tl.exp(score - new) * tl.load(weight + at)
        under = under * shrink + share
        over = over * shrink + share * tl.load(values + one * width + column, mask=inside, other=0.0)
        most = new
    tl.store(above + row * width + column, over, mask=inside)
    lead = inside & (column % channels == 0)
    tl.store(highest + row * heads + head, most, mask=lead)
    tl.store(below + row * heads + head, under, mask=lead)


def attended(scored: Scored, graph: MaskedGraph, *, slope: float) -> tuple[Tensor, Tensor, Tensor]:
    """Largest scores and denominators [N, models * heads], numerators [N, models * heads, channels]."""
    rows, heads, channels = scored.values.shape
    highest, below = torch.empty_like(scored.sent), torch.empty_like(scored.sent)
    above = torch.empty_like(scored.values)
    sources, width = graph.sources, heads * channels
    given, senders = (scored.values, scored.sent, scored.received), (sources.start, sources.other, sources.weight)
    _keep.launch_rows(*(rows, width), *(highest, below, above), *given, *senders, width, channels, heads, SLOPE=slope)
    return highest, below, above


@kernel
def _update(  # type: ignore[no-untyped-def]
    out,
    spoilt,
    values,
    sent,
    received,
    highest,
    below,
    above,
    new_values,
    new_sent,
    node,
    inner,
    source,
    start,
    weight,
    source_node,
    kind,
    limit,
    share_kept,
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
    skip = False
    if not FIRST:
        skip = tl.load(inner + row) >= 0  # its own score changed: summed afresh
    if skip:
        if program % blocks == 0:
            tl.store(spoilt + row, 1)
    else:
        column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
        inside = column < width
        head = column // channels
        here = tl.load(node + row)
        mine = tl.load(received + here * heads + head, mask=inside, other=0.0)
        most = tl.load(highest + here * heads + head, mask=inside, other=0.0)
        before = tl.load(below + here * heads + head, mask=inside, other=1.0)
        under, over = before, tl.load(above + here * width + column, mask=inside, other=0.0)
        largest = tl.full([BLOCK], 0.0, values.dtype.element_ty)
        for at in range(tl.load(start + row), tl.load(start + row + 1)):
            one = tl.load(source + at)
            name, how, times = tl.load(source_node + one), tl.load(kind + one), tl.load(weight + at)
            which = one
            if FIRST:
                which = name
            if how != 1:  # not a removed target
                score = mine + tl.load(new_sent + which * heads + head, mask=inside, other=0.0)
                score = tl.where(score > 0, score, score * SLOPE) - most
                largest = tl.maximum(largest, score)
                share = tl.exp(tl.minimum(score, limit)) * times
                under += share
                over += share * tl.load(new_values + which * width + column, mask=inside, other=0.0)
            if how != 2:  # not an added target
                score = mine + tl.load(sent + name * heads + head, mask=inside, other=0.0)
                score = tl.where(score > 0, score, score * SLOPE) - most
                share = tl.exp(score) * times
                under -= share
                over -= share * tl.load(values + name * width + column, mask=inside, other=0.0)
        wrong = inside & ((largest > limit) | (under < share_kept * before))  # digits were lost
        tl.store(out + row * width + column, over / tl.where(wrong, 1.0, under), mask=inside)
        if tl.max(wrong.to(tl.int32), axis=0) > 0:
            tl.store(spoilt + row, 1)


@kernel
def _afresh(  # type: ignore[no-untyped-def]
    out,
    rows,
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
    row = tl.load(rows + program // blocks)
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


def attended_after(
    kept: Scored,
    sums: tuple[Tensor, Tensor, Tensor],
    news: Scored | None,
    step: Step,
    graph: MaskedGraph,
    *,
    slope: float,
    limit: float,
    share: float,
) -> Tensor:
    """Rows [outer rows, models * heads * channels] by the exchange of changed messages, or summed afresh.

    Args:
        kept: values and scores of all nodes.
        sums: what :func:`attended` gives.
        news: new values and scores of the inner ball; None if they are the kept ones.
        step: the balls, and the paths between them.
        graph: who sends to whom.
        slope: of the leaky ReLU below zero.
        limit: a new score this far above the old maximum must be summed afresh.
        share: likewise a denominator that falls below this share of itself.
    """
    rows, (_, heads, channels) = len(step.ball.node), kept.values.shape
    sources, paths, width = graph.sources, step.paths, heads * channels
    out = kept.values.new_empty(rows, width)
    spoilt = torch.zeros(rows, dtype=torch.int32, device=out.device)
    old, new = (kept.values, kept.sent, kept.received), kept if news is None else news
    where = (step.ball.node, step.inner_row, paths.source, paths.start, paths.weight, step.source.node, step.kind)
    sizes, options = (width, channels, heads), dict[str, Any](SLOPE=slope, FIRST=news is None)
    changes = (out, spoilt, *old, *sums, new.values, new.sent, *where, limit, share)
    _update.launch_rows(rows, width, *changes, *sizes, **options)
    again, senders = spoilt.nonzero().squeeze(1), (sources.start, sources.other, sources.weight)
    everything = (out, again, *old, new.values, new.sent, new.received, *where, *senders)
    _afresh.launch_rows(len(again), width, *everything, *sizes, **options)
    return out
