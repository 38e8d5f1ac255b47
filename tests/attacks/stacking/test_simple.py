from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from glasshouse.attacks.stacking.simple import Calibrated, hardly_better, log_losses


@given(slope=st.floats(0.2, 3.0), offset=st.floats(-1.0, 1.0), seed=st.integers(0, 99))
def test_a_line_finds_the_log_odds_that_members_were_drawn_with(slope: float, offset: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(4, 5000))
    members = random.random(scores.shape) < expit(slope * scores + offset)
    line = Calibrated.to(scores, members)
    assert line.slope == pytest.approx(slope, abs=0.2)
    assert line.offset == pytest.approx(offset, abs=0.2)


def test_the_order_of_scores_is_never_turned_round() -> None:
    scores = np.linspace(-2, 2, 100)[None]
    line = Calibrated.to(scores, scores < 0)  # they point the wrong way
    assert line.slope == 0.0
    assert (np.diff(line.log_odds(scores)) == 0).all()


def test_log_losses_are_the_mean_surprise_of_each_target() -> None:
    chances, members = np.array([[0.9, 0.2], [0.5, 0.5]]), np.array([[True, False], [True, True]])
    wanted = [-(np.log(0.9) + np.log(0.8)) / 2, np.log(2)]
    assert log_losses(np.log(chances / (1 - chances)), members) == pytest.approx(wanted)


def test_a_gain_counts_where_it_is_more_than_a_standard_error() -> None:
    simple = np.full(4, 0.6)
    spread = np.array([0.01, -0.01, 0.01, -0.01])  # a standard error of 0.0058
    assert hardly_better(simple - 0.005 + spread, simple)
    assert not hardly_better(simple - 0.007 + spread, simple)
    assert hardly_better(simple, simple)


def test_a_simple_attack_that_tells_nothing_is_not_taken() -> None:
    coin = np.log(2) + np.array([0.001, -0.001, 0.001, -0.001])
    assert not hardly_better(coin, coin)
