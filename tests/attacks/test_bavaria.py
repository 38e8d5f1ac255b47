from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from glasshouse import Evidence, InputError
from glasshouse.attacks import BaVarIA, LiRA
from glasshouse.attacks.in_out_moments import Moments, moments
from glasshouse.attacks.lira import VariancePrior, fit_variance_prior, student_log_density
from glasshouse.core.numerics import loss_to_margin
from glasshouse.data import complementary_halves
from glasshouse.evaluation import auc, estimate_thresholds
from glasshouse.evidence import Mode
from tests.strategies import gaussian_evidence, random_evidence


def with_prior(freedom: float, variance: float, mode: Mode = "online") -> BaVarIA:
    prior = VariancePrior(freedom=freedom, variance=variance)
    return dataclasses.replace(BaVarIA(mode=mode), fit_=(prior, prior) if mode == "online" else (prior,))


def sides(evidence: Evidence) -> tuple[Moments, Moments]:
    margins = loss_to_margin(evidence.shadow_loss)
    return moments(margins, evidence.shadow_members), moments(margins, ~evidence.shadow_members)


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_scores_are_the_predictives_written_out(mode: Mode) -> None:
    evidence, _ = gaussian_evidence(records=30, models=8, shift=1.0, seed=0)
    found = with_prior(3.0, 2.0, mode).score(evidence)
    target, shadows = loss_to_margin(evidence.target_loss), loss_to_margin(evidence.shadow_loss)
    for v in range(30):
        twins = []
        for side in (True, False):
            own = shadows[evidence.shadow_members[:, v] == side, v]
            variance = (3.0 * 2.0 + 3 * own.var(ddof=1)) / 6.0
            twins.append(student(6.0, own.mean(), np.sqrt(variance * 1.25)))
        expected = twins[1].logcdf(target[v])
        if mode == "online":
            expected = twins[0].logpdf(target[v]) - twins[1].logpdf(target[v])
        assert found[v] == pytest.approx(expected, rel=1e-9)


def test_a_prior_worth_everything_gives_one_gaussian_variance_for_all() -> None:
    evidence, _ = gaussian_evidence(records=30, models=8, shift=1.0, seed=0)
    target, (within, outside) = loss_to_margin(evidence.target_loss), sides(evidence)
    expected = norm.logpdf(target, within.mean, np.sqrt(2.5)) - norm.logpdf(target, outside.mean, np.sqrt(2.5))
    np.testing.assert_allclose(with_prior(np.inf, 2.0).score(evidence), expected, rtol=1e-9)
    np.testing.assert_allclose(with_prior(1e9, 2.0).score(evidence), expected, rtol=1e-5, atol=1e-6)


def test_a_prior_worth_nothing_gives_each_record_its_own_t() -> None:
    evidence, _ = gaussian_evidence(records=30, models=8, shift=1.0, seed=0)
    target = loss_to_margin(evidence.target_loss)
    inside, outside = (
        student.logpdf(target, 3.0, side.mean, np.sqrt(side.squares / 3 * 1.25)) for side in sides(evidence)
    )
    np.testing.assert_allclose(with_prior(1e-9, 2.0).score(evidence), inside - outside, rtol=1e-6)


@pytest.mark.parametrize(("freedom", "variance"), [(3.0, 0.5), (10.0, 2.0)])
def test_the_prior_that_drew_the_variances_is_found(freedom: float, variance: float) -> None:
    random = np.random.default_rng(0)
    drawn = variance * freedom / random.chisquare(freedom, 20_000)
    models = random.integers(2, 9, 20_000).astype(np.float64)
    fitted = fit_variance_prior(Moments(models, np.zeros(20_000), drawn * random.chisquare(models - 1)))
    assert fitted.freedom == pytest.approx(freedom, rel=0.15)
    assert fitted.variance == pytest.approx(variance, rel=0.05)


def test_equal_variances_are_pooled() -> None:
    random = np.random.default_rng(1)
    squares = 4.0 * random.chisquare(3.0, 5000)
    fitted = fit_variance_prior(Moments(np.full(5000, 4.0), np.zeros(5000), squares))
    assert fitted.freedom > 50
    assert fitted.variance == pytest.approx(4.0, rel=0.05)
    one = fit_variance_prior(Moments(np.full(1, 4.0), np.zeros(1), np.array([6.0])))
    assert one == VariancePrior(freedom=np.inf, variance=2.0)


def test_it_beats_both_kinds_of_lira_where_variances_differ() -> None:
    areas = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        members = complementary_halves(2000, models=14, seed=seed)
        spread = np.sqrt(5.0 / random.chisquare(5.0, 2000))
        loss = np.logaddexp(0.0, -(1.5 * members + spread * random.normal(size=members.shape)))
        evidence = Evidence(target_loss=loss[-1], shadow_loss=loss[:-2], shadow_members=members[:-2])
        attacks = (BaVarIA(), LiRA(variance="global"), LiRA(variance="record"))
        areas.append([auc(attack.score(evidence), members[-1]) for attack in attacks])
    borrowed, pooled, own = np.mean(areas, axis=0)
    assert borrowed > max(pooled, own)


@pytest.mark.parametrize("mode", ["online", "offline"])
@given(random_evidence(min_models=4))
def test_scores_are_finite_whatever_the_losses(mode: Mode, evidence: Evidence) -> None:
    assert np.isfinite(BaVarIA(mode=mode).score(evidence)).all()


def test_offline_neither_in_models_nor_the_target_are_fitted_to() -> None:
    evidence, _ = gaussian_evidence(records=30, models=8, shift=1.0, seed=0)
    other = Evidence(
        target_loss=evidence.target_loss[::-1],
        shadow_loss=np.where(evidence.shadow_members, 1.0, evidence.shadow_loss),
        shadow_members=evidence.shadow_members,
    )
    assert BaVarIA(mode="offline").tuned(evidence) == BaVarIA(mode="offline").tuned(other)


def test_four_models_are_enough_for_thresholds_and_two_are_not_enough_for_scores() -> None:
    evidence, _ = gaussian_evidence(records=200, models=4, shift=1.0, seed=0)
    assert estimate_thresholds(BaVarIA(), evidence, [0.1])[0].simulated == 4
    few, _ = gaussian_evidence(records=20, models=2, shift=1.0, seed=0)
    with pytest.raises(InputError, match="Train 4 or more shadow models"):
        BaVarIA().score(few)


@given(
    freedom=st.one_of(st.floats(0.1, 1e6), st.just(np.inf)),
    more=st.sampled_from([0.0, 1.0]),
    far=st.sampled_from([1.0, 1e6]),
    seed=st.integers(0, 100),
)
def test_students_density_is_that_of_scipy(freedom: float, more: float, far: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    value, mean, scale = far * random.normal(size=50), random.normal(size=50), random.uniform(0.01, 3.0, size=50)
    each = np.asarray(freedom + more * random.integers(3, size=50), dtype=np.float64)
    assert (student_log_density(value, each, mean, scale) == student.logpdf(value, each, mean, scale)).all()
