from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.graph.rule.two_layers import rows as dense
from glasshouse.graph.rule.two_layers.rows import feature_rows, times
from tests.graph.rule.two_layers.plain_kernels import in_python

KERNELS = in_python(dense)


@pytest.mark.parametrize("negative", [False, True])
def test_rows_keep_the_values_that_can_be_a_maximum(negative: bool) -> None:
    x = np.array([[0, 2, 0], [0, 0, 0], [1, 0, -3 if negative else 3]], np.float32)
    rows = feature_rows(x)
    for u in range(3):
        entries = slice(rows.start[u], rows.start[u + 1])
        kept = np.arange(3) if negative else np.flatnonzero(x[u])
        assert rows.feature[entries].tolist() == kept.tolist()
        assert rows.value[entries].tolist() == x[u, kept].tolist()


@given(entries=st.integers(0, 11), seed=st.integers(0, 50))
def test_a_sparse_row_times_a_matrix_is_added_to_what_is_there(entries: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    feature, value = random.integers(6, size=entries).astype(np.int32), random.normal(size=entries)
    weight, out = random.normal(size=(6, 5)), random.normal(size=(2, 5))
    expected = out[1] + value @ weight[feature]
    KERNELS.add_product(0, entries, feature, value, weight, 1, out)
    np.testing.assert_allclose(out[1], expected, atol=1e-12)


@given(models=st.integers(1, 3), outputs=st.integers(1, 9), width=st.integers(1, 5))
def test_each_model_projects_its_own_part_of_a_row(models: int, outputs: int, width: int) -> None:
    random = np.random.default_rng(outputs)
    hidden, weight = random.normal(size=(2, models * width)), random.normal(size=(models * outputs, width))
    out = np.zeros((3, models * outputs))
    KERNELS.project(hidden, 1, weight, models, out, 2)
    expected = np.einsum("mw,mow->mo", hidden[1].reshape(models, width), weight.reshape(models, outputs, width))
    np.testing.assert_allclose(out[2], expected.reshape(-1), atol=1e-12)
    assert not out[:2].any()


@pytest.mark.parametrize("filled", [0.05, 0.9])
def test_sparse_and_dense_products_agree(filled: float) -> None:
    random = np.random.default_rng(0)
    x = np.where(random.random((40, 30)) < filled, 1, 0).astype(np.float32)
    weight = random.normal(size=(30, 7)).astype(np.float32)
    np.testing.assert_allclose(times(x, feature_rows(x), weight, threads=2), x @ weight, rtol=1e-5, atol=1e-6)
