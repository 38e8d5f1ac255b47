from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from glasshouse import InputError
from glasshouse.evaluation import PrivacyClaim, clopper_pearson, epsilon_lower_bound, judge_claim, posterior_bound
from glasshouse.evaluation.privacy import Guesses


@given(st.floats(0, 20), st.floats(0.01, 0.99))
def test_no_private_mechanism_beats_the_posterior_bound(epsilon: float, prior: float) -> None:
    """Randomised response reaches it exactly, by Bayes' rule."""
    honest = expit(epsilon)
    posterior = prior * honest / (prior * honest + (1 - prior) * (1 - honest))
    assert posterior_bound(epsilon, prior=prior) == pytest.approx(posterior)


@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.2]))
def test_without_delta_the_bound_is_clopper_pearsons_turned_into_epsilon(
    made: int, data: st.DataObject, prior: float
) -> None:
    correct = data.draw(st.integers(0, made))
    low = clopper_pearson(correct, made, confidence=0.9).low  # one-sided 95 %
    expected = max(0.0, float(logit(low) - logit(prior))) if low > 0 else 0.0
    found = epsilon_lower_bound(Guesses(correct, made), records=made, prior=prior)
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_is_below_the_truth_as_often_as_it_says(epsilon: float) -> None:
    """Randomised response on 400 random members, every record guessed by its answer, 300 times."""
    random = np.random.default_rng(0)
    below = []
    for _ in range(300):
        members = random.random(400) < 0.5
        answers = np.where(random.random(400) < expit(epsilon), members, ~members)
        guesses = Guesses(int((answers & members).sum()), int(answers.sum()))
        below.append(epsilon_lower_bound(guesses, records=400) <= epsilon)
    assert np.mean(below) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(below) < 1.0  # the bound is tight enough to be wrong sometimes


def test_delta_only_loosens_the_bound() -> None:
    guesses = Guesses(95, 100)
    bounds = [epsilon_lower_bound(guesses, records=1000, delta=delta) for delta in (0.0, 1e-6, 1e-4, 1e-2, 0.5)]
    assert all(first >= second for first, second in itertools.pairwise(bounds))
    assert bounds[-1] == 0.0


def test_nothing_called_or_everything_right_are_fine() -> None:
    assert epsilon_lower_bound(Guesses(0, 0), records=10) == 0.0
    assert epsilon_lower_bound(Guesses(0, 5), records=10, delta=0.01) == 0.0
    assert 3 < epsilon_lower_bound(Guesses(100, 100), records=100) < 4
    with pytest.raises(InputError, match="is impossible"):
        epsilon_lower_bound(Guesses(5, 3), records=10)


def test_several_looks_share_the_error() -> None:
    alone = judge_claim(None, [Guesses(95, 100)], records=1000)
    among = judge_claim(None, [Guesses(95, 100), Guesses(0, 0)], records=1000)
    assert among.epsilon < alone.epsilon
    assert "No guarantee was claimed" in alone.sentence()
    assert judge_claim(None, [], records=10).epsilon == 0.0


@pytest.mark.parametrize(("epsilon", "contradicted"), [(1.0, True), (8.0, False)])
def test_a_claim_is_judged(epsilon: float, contradicted: bool) -> None:
    verdict = judge_claim(PrivacyClaim(epsilon=epsilon, delta=1e-6), [Guesses(95, 100)], records=1000)
    assert verdict.contradicted is contradicted
    assert ("is contradicted" in verdict.sentence()) is contradicted
    assert ("does not prove" in verdict.sentence()) is not contradicted


def test_a_claim_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon ≥ 0"):
        PrivacyClaim(epsilon=-1.0)
