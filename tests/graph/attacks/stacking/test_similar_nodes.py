from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from glasshouse.core.arrays import FloatArray
from glasshouse.core.numerics import area_under_roc
from glasshouse.graph.attacks.stacking.similar_nodes import Described, SimilarNodes, compact


def similar_nodes(features: Any, labels: NDArray[np.int64]) -> SimilarNodes:
    """By one set of features."""
    return SimilarNodes.of([Described.of(compact(features), labels)], labels)


def alike_pairs(features: FloatArray, labels: NDArray[np.int64]) -> FloatArray:
    """All pairs [n, n] of nodes: the product of their features, less if their labels differ."""
    centred = features - features.mean(axis=0)
    centred /= np.sqrt((centred**2).sum(axis=1).mean())
    return np.asarray((centred @ centred.T + 0.3) * np.where(labels[:, None] == labels, 1, -1 / max(labels.max(), 1)))


def one_by_one(features: FloatArray, labels: NDArray[np.int64], surprise: FloatArray) -> FloatArray:
    """The same in plain words: for every node a kernel ridge regression is fitted to all the others."""
    alike = alike_pairs(features, labels)
    found = np.empty(len(labels))
    for i in range(len(labels)):
        rest = np.arange(len(labels)) != i
        slopes = np.linalg.solve(alike[np.ix_(rest, rest)] + 0.3 * np.eye(rest.sum()), surprise[rest])
        found[i] = alike[i, rest] @ slopes
    return found


def drawn(seed: int, count: int, width: int, classes: int) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    return random.normal(size=(count, width)), labels, random.normal(size=count)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 99), st.integers(3, 25), st.sampled_from([1, 3, 40]), st.integers(1, 4), st.booleans())
def test_it_is_a_regression_on_all_other_nodes(seed: int, count: int, width: int, classes: int, sparse: bool) -> None:
    features, labels, surprise = drawn(seed, count, width, classes)
    if sparse:
        features *= np.random.default_rng(seed).random(features.shape) < 0.08
        features[0, 0] = 1.0
    found = similar_nodes(features, labels).expected(surprise)
    assert found == pytest.approx(one_by_one(features, labels, surprise), abs=0.02)


@pytest.mark.parametrize("density", [0.02, 1.0])
def test_with_more_nodes_it_is_nearly_the_regression_on_all_pairs(density: float) -> None:
    """Few nodes have few random signs; the answers are the same but for a factor per node, by which they are scaled."""
    random = np.random.default_rng(0)
    features = random.random((700, 300)) * (random.random((700, 300)) < density)
    labels, surprise = random.integers(0, 5, 700), random.normal(size=700)
    inverse = np.linalg.inv(alike_pairs(features, labels) + 0.3 * np.eye(700))
    known = similar_nodes(features, labels)
    own = np.empty(700)
    own[known.order] = known.own
    solved = (surprise - known.expected(surprise)) * (1 - own) / 0.3
    right = inverse @ surprise
    assert np.sqrt(np.mean((solved - right) ** 2)) < 0.01 * right.std()
    factor = (1 - own) / (0.3 * np.diag(inverse))
    assert np.sqrt(np.mean((factor - 1) ** 2)) < 0.15
    assert factor.mean() == pytest.approx(1, abs=0.02)
    exact = surprise - right / np.diag(inverse)
    assert np.corrcoef(known.expected(surprise), exact)[0, 1] > 0.95


def test_its_own_answer_hardly_moves_what_is_expected_of_a_node() -> None:
    features, labels, surprise = drawn(0, 200, 400, 3)
    known = similar_nodes(features, labels)
    moved = []
    for i in range(0, 200, 20):
        other = surprise.copy()
        other[i] += 3
        moved.append((known.expected(other) - known.expected(surprise))[i] / 3)
    assert abs(np.mean(moved)) < 0.1
    assert np.abs(moved).max() < 0.4


def test_targets_together_and_one_by_one_are_the_same() -> None:
    features, labels, _ = drawn(0, 60, 40, 3)
    surprises = np.random.default_rng(1).normal(size=(5, 60))
    kin = similar_nodes(features, labels)
    found = kin.expected(surprises)
    assert found.shape == (5, 60)
    assert np.stack([kin.expected(row) for row in surprises]) == pytest.approx(found, abs=1e-4)


def test_the_number_of_threads_changes_no_byte() -> None:
    features, labels, surprise = drawn(0, 600, 80, 3)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(similar_nodes(features, labels).expected(surprise))
    assert (found[0] == found[1]).all()


def test_membership_shows_once_the_models_own_leanings_are_gone() -> None:
    """A model leans by its features, for one class and against the other; a member's answer is a little surer."""
    random = np.random.default_rng(0)
    features, labels = random.normal(size=(2000, 10)), random.integers(0, 2, 2000)
    members = random.random(2000) < 0.5
    leaning = 3 * features @ random.normal(size=10) / np.sqrt(10) * (2 * labels - 1)
    surprise = leaning + members + 0.5 * random.normal(size=2000)
    beyond = surprise - similar_nodes(features, labels).expected(surprise)
    assert area_under_roc(surprise, members) < 0.65
    assert area_under_roc(beyond, members) > 0.85


@pytest.mark.parametrize("far", [1e300, -1e300])
def test_an_answer_beyond_all_measure_counts_as_a_large_one(far: float) -> None:
    features, labels, surprise = drawn(1, 30, 5, 3)
    known = similar_nodes(features, labels)
    surprise[4] = far
    assert (known.expected(surprise) == known.expected(np.clip(surprise, -10, 10))).all()


@pytest.mark.parametrize("features", [np.ones((5, 3)), np.zeros((5, 3)), np.zeros((5, 0)), np.full((5, 3), 1e30)])
def test_nodes_that_all_look_the_same_are_all_kin(features: FloatArray) -> None:
    found = similar_nodes(features, np.zeros(5, dtype=np.int64)).expected(np.array([1.0, 1, 1, 1, 0]))
    assert (found > 0.5).all()
    assert found[4] == found.max()
