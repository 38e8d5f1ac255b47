"""Row arithmetic that the three architectures share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glasshouse.arrays import F32, I32, Floats, IntArray
from glasshouse.graph.rule.jit import inner_kernel, kernel
from glasshouse.graph.rule.toggle.compiled.workers import even_cuts, open_workers

__all__ = ["SparseRows", "add_product", "project", "sparse_rows", "times"]


class SparseRows(NamedTuple):
    """The non-zero entries of a feature matrix, row by row (all entries if some are negative)."""

    start: IntArray  # [n + 1]
    feature: I32  # [entries]
    value: F32  # [entries]


def sparse_rows(x: F32) -> SparseRows:
    """The rows of x [n, features].

    Example:
        >>> sparse_rows(np.array([[0.0, 2.0], [0.0, 0.0]], np.float32)).feature
        array([1], dtype=int32)
    """
    # If there are negative values, a zero can be a maximum, so zeros must be looked at too.
    keep_zeros = bool(x.min(initial=0) < 0)
    start = np.zeros(len(x) + 1, np.int64)
    _count_entries(x, keep_zeros, start)
    start = np.cumsum(start)
    rows = SparseRows(start, np.zeros(start[-1], np.int32), np.zeros(start[-1], np.float32))
    _copy_entries(x, keep_zeros, rows)
    return rows


@kernel
def _count_entries(x: Floats, keep_zeros: bool, start: IntArray) -> None:
    for u in range(x.shape[0]):
        entries = 0
        for j in range(x.shape[1]):
            entries += keep_zeros or x[u, j] != 0
        start[u + 1] = entries


@kernel
def _copy_entries(x: Floats, keep_zeros: bool, rows: SparseRows) -> None:
    i = 0
    for u in range(x.shape[0]):
        for j in range(x.shape[1]):
            if keep_zeros or x[u, j] != 0:
                rows.feature[i] = j
                rows.value[i] = x[u, j]
                i += 1


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
def _product_rows(first: int, last: int, rows: SparseRows, weight: Floats, out: Floats) -> None:
    for u in range(first, last):
        add_product(rows.start[u], rows.start[u + 1], rows.feature, rows.value, weight, u, out)


def times(x: F32, rows: SparseRows, weight: F32, *, threads: int) -> F32:
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
