"""Rows of a summed layer after a toggle: gathered, weighed, summed, scaled and finished in one pass."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from glasshouse.graph.rule.incremental.balls import Step
from glasshouse.graph.rule.incremental.triton import blocks_of, kernel

tl: Any = None  # triton.language, filled in by the first launch
_BLOCK = 128  # columns of one program
_UNIT = 4  # values that a GPU loads in one instruction, where the rows allow it


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
    """How many messages a program loads at once, for rows with so many on average.

    Example:
        >>> paths_at_once(1.3), paths_at_once(6.0)
        (2, 8)
    """
    return 2 if mean < 2 else 4 if mean < 4 else 8


def summed_rows(
    sums: Tensor, gain: Tensor, own: Tensor, rest: Tensor, step: Step, *, weight: Tensor, scale: Tensor
) -> Tensor:
    """Finished rows ``scale * (sum + over their paths weight * gain + own) + rest``, [outer rows, models * width].

    Args:
        sums: kept sums [N, models * width].
        gain: changes of messages [inner rows, models * width].
        own: changes of the inner rows' messages to themselves, likewise.
        rest: what is outside the sum, [outer rows or 1, models * width].
        step: balls and paths.
        weight: of each path.
        scale: [outer rows].
    """
    rows, width = len(step.ball.node), sums.shape[1]
    out = sums.new_empty(rows, width)
    block, blocks = blocks_of(width, most=_BLOCK)
    unit = _UNIT if width % _UNIT == 0 else 1
    rest = rest.expand(-1, width).contiguous()
    _rows.launch(
        rows * blocks,
        *(out, sums, gain, own, rest, step.ball.node, step.inner, step.paths.source, step.paths.start, weight, scale),
        *(width // unit, width // unit if len(rest) > 1 else 0, blocks),
        warps=1,
        UNIT=unit,
        BLOCK=block,
        PATHS=paths_at_once(len(step.paths.source) / max(rows, 1)),
    )
    return out
