from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from glasshouse.arrays import FloatArray
from glasshouse.graph.attacks.stacking import kin
from glasshouse.graph.attacks.stacking.kin import Kin
from glasshouse.numerics import area_under_roc


def one_by_one(features: FloatArray, labels: NDArray[np.int64], surprise: FloatArray) -> FloatArray:
    """The same in plain words: for every node a kernel ridge regression is fitted to all the others."""
    centred = features - features.mean(axis=0)
    centred /= np.sqrt((centred**2).sum(axis=1).mean())
    agree = labels[:, None] == labels
    others = -1 / max(int(labels.max()), 1)
    alike = (centred @ centred.T + 0.3) * np.where(agree, 1, others)
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


@settings(deadline=None)
@given(st.integers(0, 99), st.integers(3, 25), st.sampled_from([1, 3, 40]), st.integers(1, 4))
def test_it_is_a_regression_on_all_other_nodes(seed: int, count: int, width: int, classes: int) -> None:
    features, labels, surprise = drawn(seed, count, width, classes)
    found = Kin.of(features, labels).expected(surprise)
    assert found == pytest.approx(one_by_one(features, labels, surprise), abs=1e-8)


def test_pair_by_pair_and_column_by_column_are_the_same() -> None:
    features, labels, surprise = drawn(0, 60, 40, 3)
    pairs = Kin.of(features, labels)
    centred = features - features.mean(axis=0)
    centred /= np.sqrt((centred**2).sum(axis=1).mean())
    columns = kin._by_columns(kin._columns(centred, kin._codes(3)[labels], most=82))
    assert (len(pairs.fit), len(columns.fit)) == (1, 2)
    assert columns.expected(surprise) == pytest.approx(pairs.expected(surprise))


def test_where_room_is_short_the_main_directions_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    hidden = random.normal(size=(300, 3))
    features = hidden @ random.normal(size=(3, 50)) + 0.01 * random.normal(size=(300, 50))
    labels = random.integers(0, 2, 300)
    surprise = hidden[:, 0] * (2 * labels - 1)
    whole = Kin.of(features, labels).expected(surprise)
    monkeypatch.setattr(kin, "_ROOM", 300 * 8)
    short = Kin.of(features, labels)
    assert short.fit[0].shape[1] <= 8
    assert np.corrcoef(short.expected(surprise), whole)[0, 1] > 0.999


def test_membership_shows_once_the_models_own_leanings_are_gone() -> None:
    """A model leans by its features, for one class and against the other; a member's answer is a little surer."""
    random = np.random.default_rng(0)
    features, labels = random.normal(size=(2000, 10)), random.integers(0, 2, 2000)
    members = random.random(2000) < 0.5
    leaning = 3 * features @ random.normal(size=10) / np.sqrt(10) * (2 * labels - 1)
    surprise = leaning + members + 0.5 * random.normal(size=2000)
    beyond = surprise - Kin.of(features, labels).expected(surprise)
    assert area_under_roc(surprise, members) < 0.65
    assert area_under_roc(beyond, members) > 0.85


@pytest.mark.parametrize("far", [1e300, -1e300])
def test_an_answer_beyond_all_measure_counts_as_a_large_one(far: float) -> None:
    features, labels, surprise = drawn(1, 30, 5, 3)
    known = Kin.of(features, labels)
    surprise[4] = far
    assert (known.expected(surprise) == known.expected(np.clip(surprise, -10, 10))).all()


def test_nodes_that_all_look_the_same_are_all_kin() -> None:
    found = Kin.of(np.ones((5, 3)), np.zeros(5, dtype=np.int64)).expected(np.array([1.0, 1, 1, 1, 0]))
    assert (found > 0.5).all()
    assert found[4] == found.max()
