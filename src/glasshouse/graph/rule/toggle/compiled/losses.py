"""The losses of `glasshouse.losses` for a row of logits of all models at once, with exponentials in vector registers.

Margin and softplus are split at the largest logit, which keeps the digits of a confident answer too: log1p of the sum
of the other powers, and how far the label's logit is below the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glasshouse.arrays import F32, I32, FloatArray, IntArray
from glasshouse.graph.rule.jit import inner_kernel

__all__ = ["LossRow", "LossSum", "add_losses", "clear", "new_loss_row", "new_loss_sum", "row_losses", "total"]

_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)  # few enough bits that a multiple of it is exact
_LN2_LOW = np.float32(-2.12194440e-4)
_LOWEST = np.float32(-87.0)
_C2, _C3, _C4 = np.float32(0.5), np.float32(0.16666665459), np.float32(0.041665795894)
_C5, _C6 = np.float32(0.0083334519073), np.float32(0.0013981999507)
_ONE, _HALF = np.float32(1), np.float32(0.5)


class LossRow(NamedTuple):
    """One thread's space for the logits of one node, model after model."""

    logits: F32  # [models * classes]
    power: F32  # [models * classes], exponentials
    exponent: I32  # [models * classes]
    scale: F32  # [models * classes], the same memory as exponent
    excess: FloatArray  # [models], e^loss' - 1, where loss' is the loss if the label had the largest logit
    behind: FloatArray  # [models], how far the label's logit is below the largest


class LossSum(NamedTuple):
    """Sums of losses over rows. log(1 + a) + log(1 + b) = log((1 + a)(1 + b)): one logarithm for many rows."""

    product: FloatArray  # [models]
    sum: FloatArray  # [models]
    rows: IntArray  # [1], factors in the product


def new_loss_row(models: int, classes: int) -> LossRow:
    """Space for rows of models * classes logits."""
    exponent = np.zeros(models * classes, np.int32)
    return LossRow(
        logits=np.zeros(models * classes, np.float32),
        power=np.zeros(models * classes, np.float32),
        exponent=exponent,
        scale=exponent.view(np.float32),
        excess=np.zeros(models),
        behind=np.zeros(models),
    )


def new_loss_sum(models: int) -> LossSum:
    """A sum at zero."""
    return LossSum(product=np.ones(models), sum=np.zeros(models), rows=np.zeros(1, np.int64))


@inner_kernel
def _split(label: int, row: LossRow) -> None:
    """Fill ``excess`` and ``behind`` from the logits; loss = log1p(excess) + behind."""
    models = len(row.excess)
    classes = len(row.logits) // models
    logits, power, exponent, scale = row.logits, row.power, row.exponent, row.scale
    for m in range(models):
        first = m * classes
        winner = logits[first]
        for j in range(first + 1, first + classes):
            winner = max(winner, logits[j])
        row.behind[m] = winner - logits[first + label]
        for j in range(first, first + classes):
            power[j] = max(logits[j] - winner, _LOWEST)
    for j in range(len(power)):
        x = power[j]
        k = np.floor(x * _LOG2_E + _HALF)
        r = x - k * _LN2_HIGH - k * _LN2_LOW
        exponent[j] = (np.int32(k) + np.int32(127)) << np.int32(23)  # the bits of 2^k
        power[j] = _ONE + r * (_ONE + r * (_C2 + r * (_C3 + r * (_C4 + r * (_C5 + r * _C6)))))
    for m in range(models):
        excess = -1.0  # the power of the largest logit is exactly one; in float64 a tiny rest keeps its digits
        for j in range(m * classes, (m + 1) * classes):
            excess += power[j] * scale[j]
        row.excess[m] = excess


@inner_kernel
def row_losses(label: int, row: LossRow, node: int, losses: FloatArray) -> None:
    """Write the losses of one node into ``losses[node]``; losses is [n, models]."""
    _split(label, row)
    for m in range(len(row.excess)):
        losses[node, m] = np.log1p(row.excess[m]) + row.behind[m]


@inner_kernel
def clear(sums: LossSum) -> None:
    """Start again from zero."""
    sums.rows[0] = 0
    for m in range(len(sums.sum)):
        sums.product[m] = 1.0
        sums.sum[m] = 0.0


@inner_kernel
def _fold(sums: LossSum) -> None:
    sums.rows[0] = 0
    for m in range(len(sums.sum)):
        sums.sum[m] += np.log(sums.product[m])
        sums.product[m] = 1.0


@inner_kernel
def add_losses(label: int, row: LossRow, sums: LossSum) -> None:
    """Add the losses of one row of logits to the sums."""
    _split(label, row)
    for m in range(len(sums.sum)):
        sums.product[m] *= 1.0 + row.excess[m]
        sums.sum[m] += row.behind[m]
    sums.rows[0] += 1
    if sums.rows[0] == 64:  # a factor is at most the number of classes, so 64 of them stay far from overflow
        _fold(sums)


@inner_kernel
def total(sums: LossSum) -> None:
    """Update ``sums.sum``."""
    _fold(sums)
