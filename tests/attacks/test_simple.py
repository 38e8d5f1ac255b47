from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from glasshouse.attacks import cross_fit as fitting
from glasshouse.attacks.cross_fit import Calibrated, log_losses, part_of_simple, power_at_low_rates
from glasshouse.core.arrays import BoolArray, FloatArray
from tests.strategies import scores_and_members


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


def pool(seed: int, *, blur: float, records: int = 1000) -> tuple[FloatArray, FloatArray, BoolArray]:
    """True log-odds of eight targets, a simple attack that knows them up to noise of this size, and the members."""
    random = np.random.default_rng(seed)
    odds = 2 * random.normal(size=(8, records))
    simple = (odds + blur * random.normal(size=odds.shape)) / (1 + blur**2 / 4)
    return odds, simple, random.random(odds.shape) < expit(odds)


def test_what_is_learned_and_better_has_no_simple_part_and_noise_does_not_change_that() -> None:
    parts = []
    for seed in range(60):
        odds, simple, members = pool(seed, blur=1.0)
        learned = odds + 0.2 * np.random.default_rng(1000 + seed).normal(size=odds.shape)
        parts.append(part_of_simple(learned, simple, members))
    assert np.mean(parts) < 0.1
    assert 1.0 not in parts


def test_what_is_not_better_is_replaced_by_the_simple_attack() -> None:
    odds, simple, members = pool(0, blur=0.3)
    assert part_of_simple(0.2 * odds, simple, members) == 1.0
    assert part_of_simple(simple, simple, members) == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_who_is_better_on_the_whole_and_worse_where_it_matters_is_noticed(seed: int) -> None:
    """What was learned knows most records better, but not which of the surest are members."""
    random = np.random.default_rng(500 + seed)  # not that of the pool
    odds, blurred, members = pool(seed, blur=1.5)
    sure = odds > np.quantile(odds, 0.9)
    learned = np.where(sure, np.quantile(odds, 0.95) + 0.01 * random.normal(size=odds.shape), odds)
    simple = np.where(odds < 0, blurred.clip(max=0), odds)
    losses = [log_losses(one, members).mean() for one in (learned, simple)]
    assert losses[0] < losses[1]
    part = part_of_simple(learned, simple, members)
    assert part > 0
    chosen = (1 - part) * learned + part * simple
    rates = [(t, rate) for t in range(8) for rate in (0.003, 0.01)]
    found = [np.mean([slow_tpr(one[t], members[t], rate) for t, rate in rates]) for one in (chosen, learned)]
    assert found[0] > found[1]


def slow_tpr(odds: FloatArray, members: BoolArray, rate: float) -> float:
    """The largest share of members above any threshold that at most this share of the others exceeds."""
    best = 0.0
    for threshold in odds:
        if (odds[~members] > threshold).mean() <= rate:
            best = max(best, float((odds[members] > threshold).mean()))
    return best


@given(scores_and_members())
def test_power_at_low_rates_is_that_of_every_threshold_tried(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = pair
    wanted = np.mean([slow_tpr(scores, members, rate) for rate in (0.001, 0.003, 0.01, 0.03)])
    assert power_at_low_rates(scores[None], members[None])[0] == pytest.approx(wanted)


def test_a_simple_attack_that_tells_nothing_has_no_part() -> None:
    random = np.random.default_rng(0)
    members = random.random((4, 400)) < 0.5
    coin = 0.01 * random.normal(size=members.shape)
    assert part_of_simple(coin, coin, members) == 0.0


def test_a_line_through_a_part_of_many_scores_is_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=(4, 20_000))
    members = random.random(scores.shape) < 1 / (1 + np.exp(-2 * scores - 1))
    whole = Calibrated.to(scores, members)
    monkeypatch.setattr(fitting, "_MOST", 20_000)
    some = Calibrated.to(scores, members)
    assert (some.slope, some.offset) == pytest.approx((whole.slope, whole.offset), abs=0.1)
    assert some != whole
