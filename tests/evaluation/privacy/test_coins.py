"""Bounds with coins of our own, on mechanisms whose μ is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from glasshouse.core.errors import InputError
from glasshouse.evaluation import auc, gaussian_epsilon
from glasshouse.evaluation.privacy.bounds import area_spread, canaries_for, mu_from_area, mu_of


def released(mu: float, random: np.random.Generator, count: int = 800) -> tuple[np.ndarray, np.ndarray]:
    """Scores of canaries whose releases have unequal scales and places, each μ-Gaussian private by itself."""
    members = random.random(count) < 0.5
    place, scale = 0.3 * random.normal(size=count), 1 + 0.2 * random.random(count)
    return place + scale * (mu * members + random.normal(size=count)), members


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.5])
def test_the_bound_is_false_about_as_seldom_as_said(mu: float) -> None:
    random = np.random.default_rng(0)
    false = sum(mu_from_area(*released(mu, random)) > mu for _ in range(300))
    assert false <= 27  # 5 % of 300; 27 or fewer in 99.8 % of cases


@pytest.mark.parametrize(("mu", "share"), [(0.3, 0.5), (1.0, 0.5), (2.0, 0.5), (0.3, 0.15)])
def test_the_spread_of_the_area_is_that_of_many_draws(mu: float, share: float) -> None:
    random, areas = np.random.default_rng(1), []
    for _ in range(600):
        members = random.random(300) < share
        areas.append(auc(random.normal(size=300) + mu * members, members))
    assert np.std(areas) * math.sqrt(300) == pytest.approx(area_spread(mu, share), rel=0.1)
    assert np.mean(areas) == pytest.approx(float(ndtr(mu / math.sqrt(2))), abs=0.006)


def test_planned_canaries_have_the_power_that_was_asked_for() -> None:
    random, count = np.random.default_rng(2), canaries_for(4.0, shown=2.4)
    mu, shown = mu_of(4.0, 1e-5), 0
    for _ in range(200):
        members = random.random(count) < 0.5
        found = mu_from_area(random.normal(size=count) + mu * members, members)
        shown += gaussian_epsilon(found, 1e-5) >= 2.4
    assert 0.7 < shown / 200 < 0.9


def test_canaries_that_are_left_out_make_up_for_some_that_train() -> None:
    """With a share of 0.1 fewer than 10 of 17 as many train; and a sure bound is below the true μ."""
    fair, few = (canaries_for(1.0, shown=0.6, share=share, confidence=0.9999) for share in (0.5, 0.1))
    assert 0.5 * fair > 1.7 * (0.1 * few)
    random, mu = np.random.default_rng(3), mu_of(1.0, 1e-5)
    for _ in range(20):
        members = random.random(20_000) < 0.1
        assert mu_from_area(random.normal(size=20_000) + mu * members, members, confidence=0.9999) < mu


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(InputError, match="between 0 and 4"):
        canaries_for(4.0, shown=4.0)
