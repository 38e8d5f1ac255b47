from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse import InputError
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import auc, roc, tpr_at_fpr
from glasshouse.evaluation.roc import allowed_wrong
from tests.strategies import scores_and_members


@given(scores_and_members())
def test_every_point_is_a_threshold_tried_by_brute_force(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = pair
    curve = roc(scores, members)
    expected = {(0.0, 0.0)}
    for threshold in scores:
        called = scores >= threshold
        expected.add((float(called[~members].mean()), float(called[members].mean())))
    assert set(zip(curve.fpr.tolist(), curve.tpr.tolist(), strict=True)) == expected
    for threshold, fpr, tpr in zip(curve.thresholds, curve.fpr, curve.tpr, strict=True):
        assert (scores[~members] >= threshold).mean() == fpr
        assert (scores[members] >= threshold).mean() == tpr


@given(scores_and_members())
def test_auc_counts_every_pair_with_ties_half(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = pair
    inside, outside = scores[members][:, None], scores[~members][None, :]
    assert auc(scores, members) == pytest.approx((inside > outside).mean() + (inside == outside).mean() / 2)


def test_tied_scores_do_not_hide_an_area_of_059() -> None:
    """A tool that breaks ties by order says 0.50 here, or whatever the order gives."""
    scores = np.repeat([1.0, 0.0, 1.0, 0.0], [59, 41, 41, 59])
    members = np.repeat([True, True, False, False], [59, 41, 41, 59])
    for order in (np.arange(200), np.arange(200)[::-1]):
        assert auc(scores[order], members[order]) == pytest.approx(0.59)
        assert len(roc(scores[order], members[order]).fpr) == 3


@given(scores_and_members(), st.floats(0.001, 0.999))
def test_tpr_is_the_best_among_thresholds_that_keep_the_rate(pair: tuple[FloatArray, BoolArray], fpr: float) -> None:
    scores, members = pair
    allowed = [0.0]
    for threshold in scores:
        called = scores >= threshold
        if called[~members].mean() <= fpr + 1e-12:
            allowed.append(float(called[members].mean()))
    assert tpr_at_fpr(scores, members, fpr) == max(allowed)


def test_a_rate_is_never_interpolated_between_tied_scores() -> None:
    assert tpr_at_fpr([1.0] * 10, [1] * 5 + [0] * 5, 0.5) == 0.0


def test_a_rate_that_is_a_whole_count_is_reached() -> None:
    """3 of 300 is 1 %, whatever the fractions round to."""
    for count in range(100, 1000, 100):
        scores = np.arange(count + 1.0)
        members = np.zeros(count + 1, dtype=bool)
        members[count - count // 100] = True  # count/100 non-members above it
        assert tpr_at_fpr(scores, members, 0.01) == 1.0


@given(st.integers(1, 100_000), st.data())
def test_a_rate_allows_the_whole_number_that_it_is_of_the_non_members(non_members: int, data: st.DataObject) -> None:
    """0.29 · 100 is 28.999999999999996 in floating point, and 29 are allowed; a little less than 29 allows 28."""
    count = data.draw(st.integers(1, non_members))
    assert allowed_wrong(count / non_members, non_members) == count
    assert allowed_wrong((count - 1e-6) / non_members, non_members) == count - 1
    assert (allowed_wrong(0.29, 100), allowed_wrong(0.57, 100), allowed_wrong(1.0, 7)) == (29, 57, 7)


def test_infinite_scores_are_scores_too() -> None:
    assert auc([np.inf, -np.inf], [1, 0]) == 1.0


@pytest.mark.parametrize(
    ("scores", "members", "message"),
    [
        ([0.1, np.nan], [1, 0], "position 1 has the score NaN"),
        ([0.1, 0.2], [1, 1], "all 2 records are members"),
        ([0.1, 0.2], [0, 0], "all 2 records are non-members"),
        ([0.1, 0.2, 0.3], [1, 0], "members: shape"),
        ([[0.1], [0.2]], [1, 0], "scores: shape"),
        ([True, False], [0.1, 0.2], "in the order"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(scores: list[float], members: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        roc(scores, members)
