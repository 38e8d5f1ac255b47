"""Row arithmetic that the three architectures share: weights of several models side by side, and losses.

The losses are those of `outputs` for a row of logits of all models at once. Margin and softplus are split at
the largest logit, which keeps the digits of a confident answer too: log1p of the sum of the other powers, and how far
the label's logit is below the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from glasshouse.core.arrays import F32, I32, FloatArray, Floats, IntArray
from glasshouse.graph.rule.two_layers.graph import even_cuts, open_workers
from glasshouse.graph.rule.two_layers.kernels import inner_kernel, kernel


class FeatureRows(NamedTuple):
    """The non-zero entries of a feature matrix, row by row (all entries if some are negative)."""

    start: IntArray  # [n + 1]
    feature: I32  # [entries]
    value: F32  # [entries]


def feature_rows(x: F32) -> FeatureRows:
    """The rows of x [n, features]."""
    # If there are negative values, a zero can be a maximum, so zeros must be looked at too.
    entry = np.arange(x.size) if x.min(initial=0) < 0 else np.flatnonzero(x != 0)
    start = np.searchsorted(entry, np.arange(len(x) + 1) * x.shape[1])
    return FeatureRows(start, (entry % max(x.shape[1], 1)).astype(np.int32), x.reshape(-1)[entry])


@inner_kernel
def add_product(first: int, last: int, feature: I32, value: Floats, weight: Floats, row: int, out: Floats) -> None:
    """out[row] += sum of value[i] * weight[feature[i]] for i from first to last; weight [features, width]."""
    width = out.shape[1]
    i = first
    while i + 4 <= last:  # four at a time: the running sum is loaded and stored a quarter as often
        f0, f1, f2, f3 = feature[i], feature[i + 1], feature[i + 2], feature[i + 3]
        x0, x1, x2, x3 = value[i], value[i + 1], value[i + 2], value[i + 3]
        for j in range(width):
            out[row, j] += x0 * weight[f0, j] + x1 * weight[f1, j] + x2 * weight[f2, j] + x3 * weight[f3, j]
        i += 4
    while i < last:
        f0, x0 = feature[i], value[i]
        for j in range(width):
            out[row, j] += x0 * weight[f0, j]
        i += 1


@kernel
def _product_rows(first: int, last: int, rows: FeatureRows, weight: Floats, out: Floats) -> None:
    for u in range(first, last):
        add_product(rows.start[u], rows.start[u + 1], rows.feature, rows.value, weight, u, out)


def times(x: F32, rows: FeatureRows, weight: F32, *, threads: int) -> F32:
    """The product of x [n, features] and weight [features, width], by the faster of two ways."""
    if len(rows.value) > 0.2 * x.size:
        return np.ascontiguousarray(x @ weight)
    out = np.zeros((len(x), weight.shape[1]), np.float32)
    with open_workers(threads, lambda: None) as workers:
        workers.each(lambda _, cut: _product_rows(*cut, rows, weight, out), even_cuts(len(x), 8 * threads))
    return out


@inner_kernel
def project(hidden: Floats, row: int, weight: Floats, models: int, out: Floats, place: int) -> None:
    """out[place] = hidden[row] times weight, model by model.

    hidden [., models * width]; weight [models * outputs, width], one row per output; out [., models * outputs].
    """
    outputs = weight.shape[0] // models
    width = weight.shape[1]
    zero = hidden[row, 0] - hidden[row, 0]
    for m in range(models):
        base = m * width
        c, last = m * outputs, (m + 1) * outputs
        while c + 4 <= last:  # four outputs share each load of the hidden row; ten times faster than one by one
            a0, a1, a2, a3 = zero, zero, zero, zero
            for j in range(width):
                x = hidden[row, base + j]
                a0 += x * weight[c, j]
                a1 += x * weight[c + 1, j]
                a2 += x * weight[c + 2, j]
                a3 += x * weight[c + 3, j]
            out[place, c], out[place, c + 1], out[place, c + 2], out[place, c + 3] = a0, a1, a2, a3
            c += 4
        while c < last:
            a0 = zero
            for j in range(width):
                a0 += hidden[row, base + j] * weight[c, j]
            out[place, c] = a0
            c += 1


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
    if label < 0:  # no label, no loss
        for m in range(models):
            row.excess[m] = 0.0
            row.behind[m] = 0.0
        return
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
def total(sums: LossSum) -> None:
    """Update ``sums.sum``: the logarithm of the product is added to it."""
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
        total(sums)


@inner_kernel
def add_change(label: int, row: LossRow, node: int, losses: FloatArray, sums: LossSum) -> None:
    """Add the losses of one row of logits, less those that the node has in ``losses`` [n, models]."""
    add_losses(label, row, sums)
    for m in range(len(sums.sum)):
        sums.sum[m] -= losses[node, m]


@inner_kernel
def write_signal(v: int, inside: bool, losses: FloatArray, sums: LossSum, signal: FloatArray) -> None:
    """S of v, [models]: its own loss, and the summed changes of its neighbours' by its presence."""
    total(sums)
    for m in range(len(signal)):
        signal[m] = losses[v, m] + (-sums.sum[m] if inside else sums.sum[m])


def array(tensor: Tensor) -> F32:
    """A tensor as float32 numbers."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float32)


def batch_columns(weights: Sequence[Tensor]) -> F32:
    """Matrices [width, features] of K models -> [features, K * width], one row per feature."""
    return np.ascontiguousarray(batch_lines(weights).T)


def batch_lines(weights: Sequence[Tensor]) -> F32:
    """Matrices [outputs, width] of K models -> [K * outputs, width]."""
    return np.concatenate([array(weight) for weight in weights], axis=0)


def batch_biases(biases: Sequence[Tensor | None], width: int) -> F32:
    """Biases [width] of K models -> [K * width]; a model without one has zeros."""
    return np.concatenate([np.zeros(width, np.float32) if b is None else array(b) for b in biases])
