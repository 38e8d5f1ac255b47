from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse

from glasshouse.core.arrays import FloatArray
from glasshouse.graph.attacks.stacking import similar_nodes
from glasshouse.graph.attacks.stacking.similar_nodes import Described, RowSums, Similarity, Solver, compact
from tests.graph.attacks.stacking.test_similar_nodes import alike_pairs

NUMPY, TORCH = None, torch.device("cpu")


def sparse_features(seed: int, count: int, width: int, density: float) -> FloatArray:
    random = np.random.default_rng(seed)
    return np.asarray(random.random((count, width)) * (random.random((count, width)) < density))


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 99),
    st.integers(2, 30),
    st.integers(1, 20),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([NUMPY, TORCH]),
)
def test_products_are_those_of_all_pairs(
    seed: int, count: int, width: int, classes: int, sparse: bool, device: torch.device | None
) -> None:
    """Of two sets of features, each of which has mean squared length one before it is centred; in order of class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    parts = [sparse_features(seed, count, width, 0.5), 1e3 * sparse_features(seed + 1, count, width + 3, 0.5)]
    for part in parts:
        part[0, 0] = 1.0
    joined = np.concatenate([part / np.sqrt((part**2).sum(axis=1).mean()) for part in parts], axis=1)
    order = np.argsort(labels, kind="stable")
    right = alike_pairs(joined, labels)[np.ix_(order, order)]
    matrices = [csr_array(part.astype(np.float32)) if sparse else part.astype(np.float32) for part in parts]
    found = Similarity.of([Described.of(each, labels, device=device) for each in matrices], labels, constant=0.3)
    values = np.eye(count, dtype=np.float32)
    product = found @ (values if device is None else torch.from_numpy(values))
    assert np.asarray(product) == pytest.approx(right, abs=1e-3)
    assert found.diagonal == pytest.approx(np.diag(right), abs=1e-3)


def test_sparse_features_stay_sparse_and_dense_ones_are_not_copied() -> None:
    thin = torch.from_numpy(sparse_features(0, 50, 200, 0.02)).float()
    found = compact(thin)
    assert issparse(found)
    assert (found.toarray() == thin.numpy()).all()
    assert issparse(compact(found))
    full = torch.rand(5, 4)
    assert np.shares_memory(compact(full), full.numpy())
    assert isinstance(compact(csr_array(full.numpy())), np.ndarray)


@pytest.mark.parametrize("density", [0.05, 1.0])
def test_where_room_is_short_products_stay_right_on_average(density: float) -> None:
    features = sparse_features(0, 60, 4000, density)
    short = compact(features, room=4 * 60 * 300)
    assert short.shape == (60, 300)
    exact, found = features @ features.T, short @ short.T
    assert np.abs(found - exact).max() < 0.3 * np.diag(exact).mean()
    assert np.diag(found).mean() == pytest.approx(np.diag(exact).mean(), rel=0.1)


def test_room_for_what_is_made_of_the_features_counts_too() -> None:
    thin = sparse_features(0, 50, 200, 0.02)
    assert issparse(compact(thin, room=8000))
    assert compact(thin, room=8000, copies=10).shape == (50, 40)


def test_columns_are_solved_a_few_at_a_time_if_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.arange(40) % 3
    matrix = Similarity.of([Described.of(sparse_features(0, 40, 30, 0.5), labels)], labels, constant=0.3)
    right = np.random.default_rng(0).normal(size=(40, 50))
    assert matrix.columns == 32
    whole = Solver.of(matrix, 40, penalty=0.3).solved(right, tolerance=1e-4)
    monkeypatch.setattr(similar_nodes, "ROOM", 32 * (40 + 90) * 7)
    assert matrix.columns == 7
    assert Solver.of(matrix, 40, penalty=0.3).solved(right, tolerance=1e-4) == pytest.approx(whole, abs=1e-3)


@pytest.mark.parametrize("device", [NUMPY, TORCH])
def test_solutions_are_those_of_the_whole_matrix(device: torch.device | None) -> None:
    """Few directions are large, and there are more nodes than directions that are treated separately."""
    labels = np.random.default_rng(0).integers(0, 3, 300)
    described = Described.of(compact(sparse_features(0, 300, 90, 0.09)), labels, device=device)
    matrix = Similarity.of([described], labels, constant=0.3)
    eye = np.eye(300, dtype=np.float32)
    whole = np.asarray(matrix @ (eye if device is None else torch.from_numpy(eye)), dtype=np.float64)
    right = np.random.default_rng(1).normal(size=(300, 4))
    right[:, 3] = 0
    exact = np.linalg.solve(whole + 0.3 * np.eye(300), right)
    found = Solver.of(matrix, 300, penalty=0.3).solved(right, tolerance=1e-4)
    assert found == pytest.approx(exact, abs=1e-3)
    assert (found[:, 3] == 0).all()


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 99), st.integers(1, 30), st.integers(1, 9), st.integers(1, 12))
def test_rows_are_summed_in_parts(seed: int, count: int, width: int, at_once: int) -> None:
    matrix = csr_array(sparse_features(seed, count, width, 0.4).astype(np.float32))
    dense = torch.from_numpy(np.random.default_rng(seed).random((width, 3), dtype=np.float32))
    found = RowSums.of(matrix, torch.device("cpu"), at_once=at_once)
    assert all(len(part[1]) <= at_once or len(part[0]) == 1 for part in found.parts)
    assert (found @ dense).numpy() == pytest.approx(matrix @ dense.numpy(), abs=1e-5)
    assert sum(one.nbytes for part in found.parts for one in part) == 8 * matrix.nnz + 8 * count
