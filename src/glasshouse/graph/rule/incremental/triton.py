"""Triton kernels, compiled on their first launch: the one place where Triton is hidden from everything else.

Each kernel does in one pass what takes torch many; the torch code beside each is its twin. Here are those from logits
to margins, and from rows to sums over targets: exponentials are in the logits' own type, relative to the largest
logit, and logarithms and sums over rows in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from glasshouse.io.caches import keep_code_private

COLUMNS = 128  # of one program


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

    def launch(self, programs: int, *arguments: Any, warps: int = 4, **constants: Any) -> None:
        """Run that many programs; none if there is nothing to do."""
        if programs == 0:
            return
        if self._compiled is None:
            keep_code_private()
            import triton

            self._function.__globals__["tl"] = triton.language  # the name that kernels use
            self._compiled = triton.jit(self._function)
        self._compiled[(programs,)](*arguments, num_warps=warps, **constants)

    def launch_rows(
        self, rows: int, width: int, *arguments: Any, most: int = COLUMNS, warps: int = 1, **constants: Any
    ) -> None:
        """Run programs that share out rows of so many columns; the last argument of all is how many each row has."""
        block, blocks = blocks_of(width, most=most)
        self.launch(rows * blocks, *arguments, blocks, warps=warps, BLOCK=block, **constants)


def kernel(function: Callable[..., None]) -> Kernel:
    """Make a function of pointers and numbers a kernel; its module needs ``tl: Any = None``, which is filled in.

    Example:
        >>> @kernel
        ... def nothing(pointer): ...
        >>> nothing.launch(0)
    """
    return Kernel(function)


def blocks_of(width: int, *, most: int) -> tuple[int, int]:
    """A power of two, at most ``most``, that fills a row of ``width`` values, and how many of them a row needs.

    Example:
        >>> blocks_of(360, most=128), blocks_of(7, most=128)
        ((128, 3), (8, 1))
    """
    block = 1
    while block < min(width, most):
        block *= 2
    return block, -(-width // block)


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
