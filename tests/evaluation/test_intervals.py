from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from glasshouse import InputError
from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation import clopper_pearson, delong
from tests.strategies import scores_and_members


@pytest.mark.parametrize(("rate", "trials"), [(0.01, 50), (0.1, 100), (0.5, 30), (0.97, 200)])
def test_clopper_pearson_covers_the_truth_at_least_as_often_as_it_says(rate: float, trials: int) -> None:
    """By simulation, and exactly by adding up the binomial probabilities of the outcomes whose interval misses."""
    drawn = np.random.default_rng(0).binomial(trials, rate, size=4000)
    intervals = [clopper_pearson(k, trials, confidence=0.9) for k in range(trials + 1)]
    covered = np.array([interval.low <= rate <= interval.high for interval in intervals])
    assert covered[drawn].mean() >= 0.9 - 3 * np.sqrt(0.09 / 4000)
    assert binom.pmf(np.arange(trials + 1), trials, rate)[covered].sum() >= 0.9


@given(st.integers(1, 200), st.data())
def test_its_ends_are_the_rates_whose_tails_hold_the_allowed_error(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = clopper_pearson(successes, trials)
    if successes:
        assert binom.sf(successes - 1, trials, low) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0.0
    if successes < trials:
        assert binom.cdf(successes, trials, high) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1.0


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="is not a rate"):
        clopper_pearson(3, 2)


@given(scores_and_members())
def test_delongs_interval_stays_inside_and_holds_the_area(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = pair
    low, high = delong(scores, members)
    inside, outside = scores[members][:, None], scores[~members][None, :]
    area = (inside > outside).mean() + (inside == outside).mean() / 2
    assert 0.0 <= low <= area + 1e-12
    assert area - 1e-12 <= high <= 1.0


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_delongs_interval_covers_the_true_area(shift: float) -> None:
    random = np.random.default_rng(0)
    truth = norm.cdf(shift / np.sqrt(2))
    members = np.arange(150) < 70
    hits = 0
    for _ in range(400):
        low, high = delong(random.normal(size=150) + shift * members, members, confidence=0.9)
        hits += low <= truth <= high
    assert 0.85 < hits / 400 < 0.95
