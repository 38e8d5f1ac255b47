"""Rows of a summed layer after a toggle: gathered, weighed, summed, scaled and finished in one pass."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.triton import COLUMNS, kernel

tl: Any = None  # triton.language, filled in by the first launch
_UNIT = 4  # values that a GPU loads in one instruction, where the rows allow it


@kernel
def _gains(  # type: ignore[no-untyped-def]
    out,
    fresh,
    table,
    node,
    plus,
    minus,
    width,
    channels,
    row_step,
    model_step,
    blocks,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    up, down = tl.load(plus + row), tl.load(minus + row)
    total = tl.zeros([BLOCK], out.dtype.element_ty)
    if up != 0.0:
        place = row * row_step + (column // channels).to(tl.int64) * model_step + column % channels
        total += up * tl.load(fresh + place, mask=inside, other=0.0)
    if down != 0.0:
        total -= down * tl.load(table + tl.load(node + row) * width + column, mask=inside, other=0.0)
    tl.store(out + row * width + column, total, mask=inside)


def message_gains(fresh: Tensor, table: Tensor, node: Tensor, *, plus: Tensor, minus: Tensor) -> Tensor:
    """``plus * fresh - minus * table[node]``, [rows, models * width].

    Args:
        fresh: new messages [rows, models, width], in any order of axes that keeps the last one whole.
        table: kept messages, [any, models * width].
        node: row of the table, [rows].
        plus: [rows]; a row whose factor is 0 is not read.
        minus: likewise.
    """
    rows, models, channels = fresh.shape
    fresh = fresh if fresh.stride(2) == 1 else fresh.contiguous()
    width = models * channels
    out = fresh.new_empty(rows, width)
    arguments = (out, fresh, table, node, plus.contiguous(), minus.contiguous())
    steps = (fresh.stride(0), fresh.stride(1))
    _gains.launch_rows(rows, width, *arguments, width, channels, *steps)
    return out


@kernel
def _rows(  # type: ignore[no-untyped-def]
    out,
    kept,
    sums,
    rest,
    messages,
    node,
    source,
    start,
    weight,
    scale,
    inner,
    own,
    correction,
    root,
    units,
    rest_units,
    blocks,
    UNIT: tl.constexpr,
    LATER: tl.constexpr,
    ROOT: tl.constexpr,
    BLOCK: tl.constexpr,
    PATHS: tl.constexpr,
):
    program = tl.program_id(0)
    width, rest_step = units * UNIT, rest_units * UNIT
    row = (program // blocks).to(tl.int64)
    column = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    here = tl.load(node + row)
    total = tl.load(sums + here * width + column, mask=inside, other=0.0)
    first, last = tl.load(start + row), tl.load(start + row + 1)
    for at in range(first, last, PATHS):
        place = at + tl.arange(0, PATHS)
        live = place < last
        sender = tl.load(source + place, mask=live, other=0)
        times = tl.load(weight + place, mask=live, other=0.0)
        tile = tl.load(
            messages + sender[:, None] * width + column[None, :], mask=live[:, None] & inside[None, :], other=0.0
        )
        total += tl.sum(tile * times[:, None], axis=0)
    mine = tl.load(inner + row)
    ends = tl.load(rest + here * rest_step + column, mask=inside, other=0.0)
    if mine >= 0:
        if LATER:
            total += tl.load(own + mine) * tl.load(messages + mine * width + column, mask=inside, other=0.0)
        back = tl.load(correction + mine)
        if back != 0.0:
            total += back * tl.load(kept + here * width + column, mask=inside, other=0.0)
        if ROOT:
            ends = tl.load(root + mine * width + column, mask=inside, other=0.0)
    total = total * tl.load(scale + row) + ends
    tl.store(out + row * width + column, total, mask=inside)


def paths_at_once(mean: float) -> int:
    """How many messages a program loads at once, for rows with so many on average."""
    return 2 if mean < 2 else 4 if mean < 4 else 8


def summed_rows(
    table: Tensor,
    step: Step,
    *,
    nodes: int,
    scale: Tensor,
    source: Tensor,
    weight: Tensor,
    own: Tensor,
    correction: Tensor,
    gain: Tensor | None = None,
    root: Tensor | None = None,
) -> Tensor:
    """Finished rows of the outer ball, [outer rows, models * width].

    Row x is ``scale_x * (sum_x + over its paths weight * message + own * gain + correction * kept message) + rest_x``;
    the last two terms of the sum only where the row is in the inner ball too.

    Args:
        table: kept messages [nodes], sums [nodes] and rest [nodes or 1], each models * width.
        step: the balls, and the paths between them.
        nodes: nodes in the union of masks.
        scale: [outer rows].
        source: row in ``gain``, or in the kept messages, of each path.
        weight: what each path's message is multiplied with.
        own: what a row's own gain is multiplied with, [inner rows].
        correction: what its own kept message is multiplied with, [inner rows].
        gain: changes of messages [inner rows, models * width]; None if messages are the kept ones.
        root: a new rest for inner rows [inner rows, models * width], or None if it does not change.
    """
    node = step.ball.node
    rows, width = len(node), table.shape[1]
    out = table.new_empty(rows, width)
    unit = _UNIT if width % _UNIT == 0 else 1
    kept = (table, table[nodes:], table[2 * nodes :], table if gain is None else gain)
    changes = (node, source, step.paths.start, weight, scale, step.inner_row, own, correction)
    _rows.launch_rows(
        *(rows, width, out, *kept, *changes, out if root is None else root),
        *(width // unit, width // unit if len(table) > 2 * nodes + 1 else 0),
        UNIT=unit,
        LATER=gain is not None,
        ROOT=root is not None,
        PATHS=paths_at_once(len(source) / max(rows, 1)),
        most=4 * COLUMNS,  # a row's paths are then read once for most of its columns
    )
    return out
