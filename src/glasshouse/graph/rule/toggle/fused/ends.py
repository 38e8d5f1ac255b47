"""From logits to margins and from rows to sums over targets, in one pass each.

Exponentials are in the logits' own type, relative to the largest logit: a margin keeps the digits that the logits have.
Logarithms and sums over rows are in float64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.fused.jit import blocks_of, kernel

__all__ = ["narrow_sums", "row_margins"]

tl: Any = None  # triton.language, filled in by the first launch
_TILE = 512  # logits that one program works on
_LINES = 256  # rows that one program adds at once


@kernel
def _margins(  # type: ignore[no-untyped-def]
    total,
    offset,
    logits,
    label,
    rows,
    models,
    classes,
    row_step,
    model_step,
    LINES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * LINES + tl.arange(0, LINES)
    live = row < rows
    own = tl.load(label + row, mask=live, other=0)
    column = tl.arange(0, BLOCK)
    other = live[:, None] & (column < classes)[None, :] & (column[None, :] != own[:, None])
    for model in range(models):
        place = logits + row * row_step + model * model_step
        value = tl.load(place[:, None] + column[None, :], mask=other, other=float("-inf"))
        highest = tl.max(value, axis=1)
        highest = tl.where(highest == float("-inf"), 0.0, highest)
        tl.store(total + row * models + model, tl.sum(tl.exp(value - highest[:, None]), axis=1), mask=live)
        truth = tl.load(place + own, mask=live, other=0.0)
        tl.store(offset + row * models + model, highest.to(tl.float64) - truth.to(tl.float64), mask=live)


def row_margins(logits: Tensor, labels: Tensor) -> Tensor:
    """Log-sum-exp of the other logits minus the true class's logit, float64 [rows, models].

    Args:
        logits: [rows, models, classes].
        labels: true class of each row, [rows].
    """
    rows, models, classes = logits.shape
    logits = logits if logits.stride(2) == 1 else logits.contiguous()
    total = logits.new_empty(rows, models)
    offset = torch.empty(rows, models, dtype=torch.float64, device=logits.device)
    block, _ = blocks_of(classes, most=2**20)
    lines = max(1, _TILE // block)
    _margins.launch(
        -(-rows // lines),
        *(total, offset, logits, labels, rows, models, classes, logits.stride(0), logits.stride(1)),
        warps=1 if block <= _TILE else 4,
        LINES=lines,
        BLOCK=block,
    )
    return total.double().log_().add_(offset)


@kernel
def _sums(  # type: ignore[no-untyped-def]
    out,
    values,
    start,
    width,
    LINES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    segment = tl.program_id(0).to(tl.int64)
    first, last = tl.load(start + segment), tl.load(start + segment + 1)
    column = tl.arange(0, BLOCK)
    inside = column < width
    total = tl.zeros([LINES, BLOCK], out.dtype.element_ty)
    for at in range(first, last, LINES):
        row = at + tl.arange(0, LINES)
        live = (row < last)[:, None] & inside[None, :]
        total += tl.load(values + row[:, None] * width + column[None, :], mask=live, other=0.0)
    tl.store(out + segment * width + column, tl.sum(total, axis=0), mask=inside)


def narrow_sums(values: Tensor, start: Tensor) -> Tensor:
    """Sums of consecutive rows, few columns and long segments: values [rows, width] to [segments, width].

    Args:
        values: contiguous, [rows, width].
        start: where each segment starts, [segments + 1].
    """
    width = values.shape[1]
    out = values.new_empty(len(start) - 1, width)
    block, _ = blocks_of(width, most=2**20)
    _sums.launch(len(out), out, values.contiguous(), start, width, LINES=_LINES, BLOCK=block)
    return out
