from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.core.arrays import F32, FloatArray
from glasshouse.core.outputs import losses_from_logits
from glasshouse.graph.rule.two_layers import rows as losses
from glasshouse.graph.rule.two_layers.kernels import kernel
from glasshouse.graph.rule.two_layers.rows import add_losses, clear, row_losses, total


@kernel  # compiled: Python itself would add a float32 to -1.0 in float32, where the rest of a confident answer is lost
def write_losses(label: Any, row: losses.LossRow, node: int, found: FloatArray) -> None:
    row_losses(label, row, node, found)  # a label of 4 bytes, as in a graph: kernels for it are compiled already


@kernel
def sum_losses(label: Any, rows: F32, row: losses.LossRow, sums: losses.LossSum) -> None:
    clear(sums)
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            row.logits[j] = rows[i, j]
        add_losses(label, row, sums)
    total(sums)


def rows_of(spread: float, *, models: int, classes: int, rows: int, seed: int) -> F32:
    return np.random.default_rng(seed).normal(scale=spread, size=(rows, models, classes)).astype(np.float32)


@given(
    spread=st.sampled_from([0.0, 1.0, 10.0, 60.0]),
    models=st.integers(1, 3),
    classes=st.integers(2, 5),
    seed=st.integers(0, 99),
)
def test_a_row_of_logits_becomes_the_losses_of_every_model(spread: float, models: int, classes: int, seed: int) -> None:
    (logits,) = rows_of(spread, models=models, classes=classes, rows=1, seed=seed)
    row, found, label = losses.new_loss_row(models, classes), np.zeros((2, models)), seed % classes
    row.logits[:] = logits.reshape(-1)
    write_losses(np.int32(label), row, 1, found)
    expected = losses_from_logits(logits, np.full(models, label))
    np.testing.assert_allclose(found[1], expected, rtol=2e-6, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 63, 64, 130])
def test_sums_over_many_rows_take_few_logarithms_and_the_same_value(rows: int) -> None:
    logits = rows_of(3.0, models=2, classes=3, rows=rows, seed=rows)
    row, sums = losses.new_loss_row(2, 3), losses.new_loss_sum(2)
    sum_losses(np.int32(1), logits.reshape(rows, -1), row, sums)
    expected = sum(losses_from_logits(one, np.array([1, 1])) for one in logits)
    np.testing.assert_allclose(sums.sum, expected, rtol=1e-6)
