from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import norm

from glasshouse import Evidence, InputError
from glasshouse.attacks import LiRA, Regressed
from glasshouse.attacks.in_out_moments import side_moments
from glasshouse.attacks.regressed import mean_margins
from glasshouse.data import complementary_halves
from glasshouse.evaluation import auc, estimate_thresholds
from glasshouse.evidence import Mode
from tests.strategies import gaussian_evidence, random_evidence


def margins(loss: np.ndarray) -> np.ndarray:
    return np.asarray(-np.log(np.expm1(loss)))


def with_target(evidence: Evidence, loss: np.ndarray) -> Evidence:
    return Evidence(target_loss=loss, shadow_loss=evidence.shadow_loss, shadow_members=evidence.shadow_members)


@pytest.mark.parametrize("prior", [0.5, 0.1])
def test_online_it_is_the_ratio_of_two_regressions_written_out(prior: float) -> None:
    evidence, _ = gaussian_evidence(records=60, models=8, shift=1.0, seed=0)
    sides = []
    for side in (True, False):
        x, y = [], []
        for target in evidence.simulated():
            said = margins(target.view.shadow_loss)
            for v in np.flatnonzero(target.members == side).tolist():
                who = target.view.shadow_members[:, v]
                x.append([1.0, said[who, v].mean(), said[~who, v].mean()])
                y.append(margins(target.view.target_loss)[v])
        coefficients, residuals, *_ = np.linalg.lstsq(np.array(x), np.array(y), rcond=None)
        sides.append((coefficients, np.sqrt(residuals[0] / (len(x) - 3))))
    scores = Regressed(prior=prior).score(evidence)
    said = margins(evidence.shadow_loss)
    for v in range(60):
        who = evidence.shadow_members[:, v]
        row = np.array([1.0, said[who, v].mean(), said[~who, v].mean()])
        inside, outside = (norm(row @ line, spread).logpdf(margins(evidence.target_loss)[v]) for line, spread in sides)
        assert logit(scores[v]) == pytest.approx(inside - outside + logit(prior), abs=1e-5)


def test_the_numbers_of_data_that_follow_the_model_are_found() -> None:
    """Usual margins of a record inside and outside, and so many models that references know both."""
    random = np.random.default_rng(0)
    members = complementary_halves(3000, models=64, seed=0)
    usual = np.where(members, random.normal(2.0, 2.0, 3000), random.normal(0.0, 2.0, 3000))
    noise = np.where(members, 0.5, 1.5) * random.normal(size=members.shape)
    loss = np.logaddexp(0.0, -(usual + noise))
    fit = Regressed().tuned(Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)).fit_
    assert fit is not None
    assert fit.inside[0].coefficients[:, 0] == pytest.approx([0.0, 1.0, 0.0], abs=0.03)
    assert fit.outside[0].coefficients[:, 0] == pytest.approx([0.0, 0.0, 1.0], abs=0.03)
    assert fit.inside[0].covariance[0, 0] == pytest.approx(0.25 * (1 + 1 / 31), rel=0.02)
    assert fit.outside[0].covariance[0, 0] == pytest.approx(2.25 * (1 + 1 / 31), rel=0.02)


def test_it_beats_plugged_in_means_where_shadows_are_few() -> None:
    areas = []
    for seed in range(6):
        evidence, members = gaussian_evidence(records=1500, models=4, shift=1.5, seed=seed, difficulty=0.5)
        areas.append([auc(attack.score(evidence), members) for attack in (Regressed(), LiRA())])
    regressed, plugged = np.mean(areas, axis=0)
    assert regressed > plugged + 0.01


@given(records=st.integers(20, 60), seed=st.integers(0, 100))
def test_permuted_records_and_models_permute_the_scores(records: int, seed: int) -> None:
    evidence, _ = gaussian_evidence(records=records, models=8, shift=1.0, seed=seed)
    random = np.random.default_rng(seed)
    order, models = random.permutation(records), random.permutation(8)
    turned = Evidence(
        target_loss=evidence.target_loss[order],
        shadow_loss=evidence.shadow_loss[models][:, order],
        shadow_members=evidence.shadow_members[models][:, order],
    )
    np.testing.assert_allclose(Regressed().score(turned), Regressed().score(evidence)[order], rtol=1e-6)


@pytest.mark.parametrize("mode", ["online", "offline"])
@given(random_evidence(min_records=2, min_models=4))
def test_the_targets_losses_do_not_change_the_fit(mode: Mode, evidence: Evidence) -> None:
    other = with_target(evidence, evidence.target_loss[::-1] + 1.0)
    first, second = (Regressed(mode=mode).tuned(some).fit_ for some in (evidence, other))
    assert first is not None
    assert second is not None
    for one, two in zip(first.inside + first.outside, second.inside + second.outside, strict=True):
        assert (one.coefficients == two.coefficients).all()
        assert (one.covariance == two.covariance).all()


def test_offline_a_record_is_judged_without_a_look_at_its_in_models() -> None:
    evidence, _ = gaussian_evidence(records=40, models=8, shift=1.0, seed=0)
    usual = Regressed(mode="offline").score(evidence)
    for v in range(40):
        loss = evidence.shadow_loss.copy()
        loss[evidence.shadow_members[:, v], v] = 30.0
        other = Evidence(target_loss=evidence.target_loss, shadow_loss=loss, shadow_members=evidence.shadow_members)
        assert Regressed(mode="offline").score(other)[v] == usual[v]


@pytest.mark.parametrize("mode", ["online", "offline"])
@given(random_evidence(min_records=2, min_models=4))
def test_scores_are_probabilities_whatever_the_losses(mode: Mode, evidence: Evidence) -> None:
    scores = Regressed(mode=mode).score(evidence)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_new_targets_stay_within_the_stated_interval(mode: Mode) -> None:
    """Simulated targets had a part in the eight numbers; targets outside the pool had none, and fare the same."""
    inside, rates = [], []
    for seed in range(20):
        evidence, members = gaussian_evidence(records=1000, models=16, shift=1.5, seed=seed)
        attack = Regressed(mode=mode).tuned(evidence)
        (threshold,) = estimate_thresholds(attack, evidence, [0.05])
        rate = threshold.decide(attack.flag_scores(evidence))[~members].mean()
        rates.append(rate)
        inside.append(threshold.interval.low <= rate <= threshold.interval.high)
    assert np.mean(inside) >= 0.85
    assert np.mean(rates) == pytest.approx(0.05, abs=0.01)


def test_signals_are_both_means_online_and_the_out_mean_offline() -> None:
    evidence, _ = gaussian_evidence(records=20, models=6, shift=1.0, seed=0)
    modes: tuple[Mode, ...] = ("online", "offline")
    online, offline = (mean_margins(side_moments(evidence, mode)) for mode in modes)
    assert online.shape == (20, 2)
    assert (online[:, 1:] == offline).all()


def test_offline_in_models_are_asked_about_other_records() -> None:
    evidence, _ = gaussian_evidence(records=20, models=6, shift=1.0, seed=0)
    assert Regressed().queries(evidence) == (7.0, 0)
    assert Regressed(mode="offline").queries(evidence) == (4.0, 60)


def test_bad_parameters_and_too_small_pools_are_refused() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        Regressed(prior=0.0)
    with pytest.raises(InputError, match="folds: 1 is too few"):
        Regressed(folds=1)
    evidence, _ = gaussian_evidence(records=20, models=2, shift=1.0, seed=0)
    with pytest.raises(InputError, match="train 4 or more"):
        Regressed().score(evidence)
