"""Evidence about a regression, against formulas written out and the exact posterior of a linear model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import RandomForestRegressor
from torch import nn

from glasshouse import Evidence, InputError, Population, audit, read_evidence, write_evidence
from glasshouse.attacks import BASE, RMIA, LiRA, attack_names, create
from glasshouse.attacks.attack import find_attack, seen_by
from glasshouse.core.numerics import area_under_roc, log_mean_exp
from glasshouse.data import complementary_halves
from glasshouse.evidence.collect import gaussian_losses, outside_spread, regression_evidence


def some_evidence(seed: int = 0, *, models: int = 8, records: int = 120, pull: float = 0.6) -> Evidence:
    """Predictions that are pulled towards the true values of members."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=records)
    members = complementary_halves(records, models=models, seed=seed)
    usual = truth + rng.normal(size=records)  # what models predict without the record
    own = rng.random(records) < 0.5
    all_members = np.vstack([own, members])
    predicted = usual + 0.3 * rng.normal(size=all_members.shape)
    predicted += pull * all_members * (truth - predicted)
    return regression_evidence(target=predicted[0], shadows=predicted[1:], members=members, targets=truth)


def test_base_is_the_exact_bayes_factor_of_a_gaussian_linear_model() -> None:
    """With draws from the true posterior, BASE's log-odds of z are log p(z | θ) − log p(z | D), in closed form."""
    rng = np.random.default_rng(1)
    features, records, sigma, draws = 3, 12, 0.7, 20_000
    x = rng.normal(size=(records, features))
    asked = rng.normal(size=(50, features))
    theta = rng.normal(size=features)  # a standard normal prior
    y, wanted = x @ theta + sigma * rng.normal(size=records), asked @ theta + sigma * rng.normal(size=50)
    covariance = np.linalg.inv(np.eye(features) + x.T @ x / sigma**2)
    mean = covariance @ x.T @ y / sigma**2
    posterior = rng.multivariate_normal(mean, covariance, size=draws)
    target = rng.multivariate_normal(mean, covariance)
    spread = np.sqrt(sigma**2 + np.einsum("nf,fg,ng->n", asked, covariance, asked))
    exact = norm.logpdf(wanted, asked @ target, sigma) - norm.logpdf(wanted, asked @ mean, spread)
    evidence = Evidence(
        target_loss=gaussian_losses(wanted - asked @ target, spread=sigma),
        shadow_loss=gaussian_losses(wanted - posterior @ asked.T, spread=sigma),
        shadow_members=np.zeros((draws, 50)),
    )
    found = BASE(mode="offline", scale=1.0).log_odds(evidence)
    assert found == pytest.approx(exact, abs=0.03)
    assert RMIA(mode="offline", offline_a=1.0).score(evidence).argsort().tolist() == found.argsort().tolist()


@pytest.mark.parametrize("seed", range(5))
def test_losses_are_log_densities_measured_from_the_highest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    residual, log_variance = rng.normal(size=(2, 3, 20)) * 2
    written_out = -norm.logpdf(residual, 0, 1.7)
    assert gaussian_losses(residual, spread=1.7) == pytest.approx(written_out + norm.logpdf(0, 0, 1.7))
    own = -norm.logpdf(residual, 0, np.exp(log_variance / 2))
    peak = norm.logpdf(0, 0, np.exp(log_variance.min() / 2))
    loss = gaussian_losses(residual, spread=1.7, log_variance=log_variance)
    assert loss == pytest.approx(own + peak)
    assert (loss >= 0).all()
    # the common constant cancels in BASE
    evidence = Evidence(target_loss=loss[0], shadow_loss=loss[1:], shadow_members=np.eye(2, 20))
    assert BASE().log_odds(evidence) == pytest.approx(-own[0] - log_mean_exp(-own[1:]))


def test_the_spread_is_of_records_outside_the_training_sets_alone() -> None:
    rng = np.random.default_rng(0)
    residual, members = rng.normal(size=(6, 40)), rng.random((6, 40)) < 0.5
    assert outside_spread(residual, members) == pytest.approx(np.sqrt((residual[~members] ** 2).mean()))
    remembered = np.where(members, 0.0, residual)
    assert outside_spread(remembered, members) == outside_spread(residual, members)
    with pytest.raises(InputError, match="every shadow model trained on all records"):
        outside_spread(residual, np.ones_like(members))


def test_predictions_without_any_error_are_no_leak() -> None:
    truth = np.arange(10.0)
    evidence = regression_evidence(
        target=truth, shadows=np.tile(truth, (4, 1)), members=complementary_halves(10, models=4, seed=0), targets=truth
    )
    assert not evidence.target_loss.any()
    assert np.ptp(BASE().score(evidence)) == 0


def test_lira_is_the_ratio_of_two_gaussians_of_the_residual() -> None:
    evidence = some_evidence()
    assert evidence.shadow_residual is not None and evidence.target_residual is not None  # noqa: PT018
    residual, members = evidence.shadow_residual, evidence.shadow_members
    sides = {}
    for inside in (True, False):
        who = members == inside
        mean = np.array([residual[who[:, n], n].mean() for n in range(evidence.records)])
        squares = sum(((residual[who[:, n], n] - mean[n]) ** 2).sum() for n in range(evidence.records))
        sides[inside] = norm(mean, np.sqrt(squares / (who.sum() - evidence.records)))
    ratio = sides[True].logpdf(evidence.target_residual) - sides[False].logpdf(evidence.target_residual)
    assert LiRA().score(evidence) == pytest.approx(ratio)
    away = np.abs(evidence.target_residual)
    farther = sides[False].cdf(-away) + sides[False].sf(away)
    assert np.exp(LiRA(mode="offline").score(evidence)) == pytest.approx(farther)


def test_every_attack_finds_members_of_a_regression_or_says_why_it_cannot() -> None:
    refused = []
    for name in attack_names(graph=False):
        attack, evidence = create(name), some_evidence(records=400)
        if attack.needs_trace or attack.needs_parts:  # more than this evidence has
            continue
        assert evidence.shadow_residual is not None
        if attack.needs_classes:
            refused.append(name)
            with pytest.raises(InputError, match=f"{name}: it cannot attack a regression: "):
                seen_by(attack, evidence)
            continue
        target = next(evidence.simulated())
        area = area_under_roc(attack.tuned(target.view).score(target.view), target.members)
        assert area > 0.7, name
    assert sorted(refused) == [
        "base-tempered",
        "class-loss",
        "classifier",
        "hinge",
        "informia",
        "modified-entropy",
        "public-quantile",
        "shrunk-lira",
    ]
    assert all(find_attack(name).needs_classes for name in refused)


@pytest.mark.parametrize("name", ["base", "lira", "bavaria", "regressed"])
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_members_that_no_model_uses_are_not_found(name: str, mode: str) -> None:
    areas = []
    for seed in range(20):
        evidence = some_evidence(seed, pull=0.0)
        mine = np.random.default_rng(100 + seed).random(evidence.records) < 0.5
        areas.append(area_under_roc(create(name, mode=mode).score(evidence), mine))
    assert np.mean(areas) == pytest.approx(0.5, abs=4 * 0.053 / np.sqrt(20))  # 0.053: of one AUC of 60 and 60 records


def test_simulated_targets_have_residuals_of_their_own() -> None:
    evidence = some_evidence()
    assert evidence.shadow_residual is not None
    for k, target in enumerate(evidence.simulated()):
        assert target.view.target_residual is not None
        assert (target.view.target_residual == evidence.shadow_residual[k]).all()
        assert target.view.regression
        assert dataclasses.replace(target.view).target_statistic is target.view.target_residual


def test_a_file_keeps_residuals_by_id_and_losses_as_they_are(tmp_path: Path) -> None:
    evidence = some_evidence(records=20)
    read = read_evidence(write_evidence(tmp_path / "evidence.npz", evidence)).evidence
    for name in ("target_loss", "shadow_loss", "target_residual", "shadow_residual"):
        assert (getattr(read, name) == getattr(evidence, name)).all()
    arrays = dict(np.load(tmp_path / "evidence.npz"))
    ids = arrays.pop("ids")
    backwards = {name: arrays[name][:, ::-1] for name in ("shadow_loss", "shadow_residual", "shadow_members")}
    np.savez(tmp_path / "other.npz", **{**arrays, **backwards}, target_ids=ids, shadow_ids=ids[::-1])
    again = read_evidence(tmp_path / "other.npz").evidence
    assert np.array_equal(again.shadow_statistic, evidence.shadow_statistic)


def test_a_file_with_half_of_the_residuals_or_with_logits_is_refused(tmp_path: Path) -> None:
    evidence = some_evidence(records=20)
    write_evidence(tmp_path / "evidence.npz", evidence)
    arrays: dict[str, Any] = dict(np.load(tmp_path / "evidence.npz"))
    np.savez(tmp_path / "half.npz", **{name: value for name, value in arrays.items() if name != "target_residual"})
    with pytest.raises(InputError, match="give target_residual and shadow_residual, or neither"):
        read_evidence(tmp_path / "half.npz")
    np.savez(tmp_path / "short.npz", **{**arrays, "target_residual": np.zeros(3)})
    with pytest.raises(InputError, match="target_residual: shape .* does not fit; expected"):
        read_evidence(tmp_path / "short.npz")
    named = {name.replace("_loss", "_logits"): value for name, value in arrays.items()}
    np.savez(tmp_path / "logits.npz", **named)
    with pytest.raises(InputError, match="a regression has losses and residuals, and no logits"):
        read_evidence(tmp_path / "logits.npz")


def test_a_negative_log_likelihood_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match="subtract the smallest loss of all models"):
        Evidence(target_loss=[-0.3], shadow_loss=[[0.2]], shadow_members=[[1]])


def test_a_quick_look_at_a_regression_has_no_estimate() -> None:
    """Without shadow models only the loss is left, on any scale; the estimate was learned from classifiers."""
    random = np.random.default_rng(0)
    x, members = random.normal(size=(300, 5)), np.arange(300) % 2 == 0
    population = Population(x, x[:, 0] + random.normal(size=300), regression=True)
    model = RandomForestRegressor(20, random_state=0).fit(x[members], population.y[members])
    result = audit(population, model=model, members=members, shadows=0)
    assert list(result.outcomes) == ["loss"]
    assert result.table()["auc"][0] > 0.7
    assert result.quick_estimate is None


def test_a_network_of_skorch_is_a_regressor_too() -> None:
    skorch = pytest.importorskip("skorch", reason="the extra `skorch` is not installed")
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 5))
    net = skorch.NeuralNetRegressor(nn.Linear, module__in_features=5, module__out_features=1, max_epochs=2)
    result = audit(Population(x, x[:, 0], regression=True), trainer=net, shadows=2, attacks=["base"])
    assert 0 < result.table()["auc"][0] < 1
