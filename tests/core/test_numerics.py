from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.numerics import (
    area_under_roc,
    finite_logits,
    log_mean_exp,
    log_normal_farther,
    logits_from_probabilities,
    loss_to_margin,
    not_finite,
    probabilities_from_logits,
)
from glasshouse.core.outputs import losses_from_logits
from tests.strategies import losses, scores_and_members


@given(hnp.arrays(np.float64, (4, 6), elements=st.floats(-700, 700)), hnp.arrays(np.bool_, (4, 6)))
def test_log_mean_exp_equals_scipys_over_the_chosen_entries(values: np.ndarray, where: np.ndarray) -> None:
    where[0] = True
    expected = [logsumexp(values[chosen, i]) - np.log(chosen.sum()) for i, chosen in enumerate(where.T)]
    np.testing.assert_allclose(log_mean_exp(values, where=where), expected, rtol=1e-12, atol=1e-12)


def test_log_mean_exp_is_the_same_across_block_borders() -> None:
    values = np.random.default_rng(0).normal(size=(3, 40_000))
    np.testing.assert_allclose(log_mean_exp(values), logsumexp(values, axis=0) - np.log(3), rtol=1e-12, atol=1e-14)


@given(st.floats(-600, 600))
def test_margin_comes_back_from_the_loss(margin: float) -> None:
    loss = losses_from_logits([[0.0, margin]], np.array([1]))
    assert loss_to_margin(loss)[0] == pytest.approx(margin, rel=1e-12, abs=1e-12)


@given(losses(), losses())
def test_margin_falls_as_the_loss_rises_and_is_finite(first: float, second: float) -> None:
    small, large = sorted([first, second])
    margins = loss_to_margin(np.array([small, large]))
    assert np.isfinite(margins).all()
    assert margins[0] >= margins[1]


def test_probabilities_of_exactly_zero_and_one_give_finite_losses() -> None:
    logits = logits_from_probabilities(np.array([[1.0, 0.0], [0.25, 0.75]]))
    losses = losses_from_logits(logits, np.array([1, 1]))
    assert losses[0] == pytest.approx(-math.log(np.finfo(np.float64).eps))
    assert losses[1] == pytest.approx(-math.log(0.75))


def test_softmax_probabilities_keep_what_the_other_classes_say() -> None:
    """1 - p is read off the others, so p = 1 - 1e-40 is not p = 1."""
    logits = logits_from_probabilities(np.array([[1.0, 1e-40]]))
    assert losses_from_logits(logits, np.array([0]))[0] == pytest.approx(1e-40)


def test_area_under_roc_counts_ties_half() -> None:
    assert area_under_roc(np.array([1.0, 1.0]), np.array([True, False])) == 0.5


@given(scores_and_members())
def test_area_under_roc_is_the_share_of_pairs_in_the_right_order(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = pair
    inside, outside = scores[members][:, None], scores[~members][None, :]
    pairs = (inside > outside) + (inside == outside) / 2
    assert area_under_roc(scores, members) == pytest.approx(pairs.mean(), abs=1e-15)


def test_the_area_of_scores_that_are_not_numbers_is_none() -> None:
    assert math.isnan(area_under_roc(np.array([1.0, np.nan, 0.0]), np.array([True, False, False])))


def test_minus_infinity_passes_the_gate_for_a_class_that_is_not_the_own_one() -> None:
    logits = np.array([[0.0, -np.inf, 1.0], [-np.inf, 0.0, 1.0], [np.nan, 0.0, 1.0], [-np.inf, -np.inf, 1.0]])
    assert not_finite(logits, np.array([0, 0, 1, 2])).tolist() == [False, True, True, True]
    assert not_finite(logits).all()


def test_probabilities_come_back_from_their_logarithms_with_exact_zeros() -> None:
    shares = np.array([[0.25, 0.75], [1.0, 0.0]])
    back = probabilities_from_logits(logits_from_probabilities(shares))
    assert back is not None
    np.testing.assert_array_equal(back, shares)
    assert probabilities_from_logits(np.array([[3.0, 2.0]])) is None


def test_minus_infinity_counts_as_an_exact_zero() -> None:
    logits = np.array([[1.0, -np.inf, 0.0]])
    assert finite_logits(logits).round(2).tolist() == [[1.0, -35.04, 0.0]]


def test_a_normal_number_is_farther_from_zero_as_tables_say() -> None:
    found = np.exp(log_normal_farther(np.array([0.0, -1.96]), np.array([5.0, 0.0])))
    assert found.round(3).tolist() == [1.0, 0.05]
