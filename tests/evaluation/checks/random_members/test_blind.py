"""The blind baseline: exact under random members, by the same rule as learners that are fitted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.core.arrays import FloatArray, IntArray
from glasshouse.evaluation.checks.random_members import blind_baseline, cells, ridge, waves


def centred(count: int, random: np.random.Generator, *, labellings: int = 3) -> FloatArray:
    members = np.arange(count) < count // 3
    drawn = np.stack([random.permutation(members) for _ in range(labellings)], axis=1)
    return np.asarray(drawn - drawn.mean(axis=0))


def ridge_by_hand(columns: FloatArray, labels: FloatArray, folds: IntArray) -> FloatArray:
    """Fold by fold and labelling by labelling, by the normal equations."""
    scores = np.empty_like(labels)
    for fold in np.unique(folds):
        for labelling in range(labels.shape[1]):
            x, y = columns[folds != fold], labels[folds != fold, labelling]
            weights = np.linalg.inv(x.T @ x + 20 * columns.shape[1] * np.eye(columns.shape[1])) @ x.T @ y
            scores[folds == fold, labelling] = columns[folds == fold] @ weights
    return scores


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), count=st.integers(10, 60), width=st.integers(1, 6))
def test_ridge_of_many_labellings_is_ridge_of_each(seed: int, count: int, width: int) -> None:
    random = np.random.default_rng(seed)
    columns, labels, folds = random.normal(size=(count, width)), centred(count, random), np.arange(count) % 5
    assert np.allclose(ridge(columns, labels, folds, random), ridge_by_hand(columns, labels, folds))


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), learner=st.sampled_from([ridge, waves, cells]))
def test_a_score_does_not_depend_on_any_label_of_its_own_fold(seed: int, learner: object) -> None:
    random = np.random.default_rng(seed)
    columns, labels, folds = random.normal(size=(40, 3)), centred(40, random), np.arange(40) % 5
    other = labels.copy()
    other[folds == 2] = -other[folds == 2]
    before, after = (learner(columns, some, folds, np.random.default_rng(seed)) for some in (labels, other))  # type: ignore[operator]
    assert np.allclose(before[folds == 2], after[folds == 2])
    assert not np.allclose(before[folds == 1], after[folds == 1])


def test_copies_of_a_record_share_all_cells() -> None:
    random = np.random.default_rng(0)
    columns = random.normal(size=(20, 3))
    columns[1] = columns[0]
    labels = centred(20, random)
    scores = cells(columns, labels, np.array([0, 0] + [1] * 18), np.random.default_rng(1))
    assert np.allclose(scores[0], scores[1])


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_p_values_of_random_members_are_uniform(share: float) -> None:
    """At most 10 % below 0.1: of 60 draws more than 13 would be one in a hundred."""
    random = np.random.default_rng(0)
    columns = random.standard_t(2, size=(120, 4))
    chances = []
    for draw in range(60):
        members = random.permutation(120) < share * 120
        chances.append(blind_baseline(columns, columns[:, :1], members, seed=draw).p_value)
    assert np.mean(np.array(chances) <= 0.1) <= 13 / 60
    assert 0.35 < np.mean(chances) < 0.65


def test_the_auc_of_random_members_is_a_half_on_average_and_inside_its_interval() -> None:
    random = np.random.default_rng(1)
    found = []
    for draw in range(60):
        columns, members = random.normal(size=(100, 5)), random.permutation(100) < 50
        found.append(blind_baseline(columns, np.empty((100, 0)), members, seed=draw))
    assert abs(np.mean([one.auc for one in found]) - 0.5) < 0.03  # out of fold without care: 0.46
    assert all(one.interval.low <= one.auc <= one.interval.high for one in found)
    assert np.mean([one.interval.low <= 0.5 <= one.interval.high for one in found]) > 0.88


def test_without_columns_nothing_is_found() -> None:
    none = np.empty((50, 0))
    found = blind_baseline(none, none, np.arange(50) < 25, seed=0)
    assert (found.auc, found.p_value) == (0.5, 1.0)


def test_the_same_seed_gives_the_same_figures_and_another_order_of_permutations_does_not() -> None:
    random = np.random.default_rng(2)
    columns, members = random.normal(size=(80, 3)), random.random(80) < 0.5
    first, again, other = (blind_baseline(columns, columns, members, seed=seed) for seed in (0, 0, 1))
    assert first == again != other
