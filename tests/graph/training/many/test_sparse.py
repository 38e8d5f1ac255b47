from __future__ import annotations

import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.graph.training.many.graph import SparseMatrix


@given(rows=st.integers(1, 6), columns=st.integers(1, 6), width=st.integers(1, 4), seed=st.integers(0, 99))
def test_products_and_gradients_are_those_of_the_dense_matrix(rows: int, columns: int, width: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=random) * (torch.rand(rows, columns, generator=random) < 0.4)
    dense = torch.randn(columns, width, generator=random, requires_grad=True)
    twin = dense.detach().clone().requires_grad_()
    found = SparseMatrix.of(scipy.sparse.csr_matrix(matrix.numpy())) @ dense
    expected = matrix @ twin
    torch.testing.assert_close(found, expected)
    towards = torch.randn(rows, width, generator=random)
    found.backward(towards)
    expected.backward(towards)
    torch.testing.assert_close(dense.grad, twin.grad)


def test_an_edge_that_is_there_twice_counts_twice() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 1, 2]])
    matrix = SparseMatrix.of_edges(edges, torch.tensor([1.0, 2.0, 4.0]), nodes=3)
    found = matrix @ torch.tensor([[1.0], [10.0], [100.0]])
    assert found.squeeze(1).tolist() == pytest.approx([0.0, 3.0, 40.0])


@given(rows=st.integers(1, 6), columns=st.integers(1, 6), seed=st.integers(0, 99))
def test_other_values_in_the_same_places_reach_both_directions(rows: int, columns: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    dense = (torch.rand(rows, columns, generator=random) + 1) * (torch.rand(rows, columns, generator=random) < 0.4)
    matrix = SparseMatrix.of(scipy.sparse.csr_matrix(dense.numpy()))
    other = matrix.with_values(torch.rand(len(matrix.rows.values()), generator=random))
    expected = dense.clone()
    expected[dense != 0] = other.rows.values()
    torch.testing.assert_close(other.rows.to_dense(), expected)
    torch.testing.assert_close(other.columns.to_dense(), expected.T)
