from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import norm
from sklearn.linear_model import QuantileRegressor

from glasshouse import Evidence
from glasshouse.attacks import QuantileRegression
from glasshouse.attacks.quantile import quantile_line
from glasshouse.evaluation import auc
from tests.strategies import gaussian_evidence, random_evidence


def pinball(residuals: np.ndarray, level: float) -> float:
    return float(np.maximum(level * residuals, (level - 1) * residuals).mean())


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_a_line_is_that_of_a_linear_program(level: float) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        signals = np.column_stack([np.ones(800), random.normal(size=(800, 2))])
        answers = signals @ random.normal(size=3) + (1 + 0.5 * signals[:, 1] ** 2) * random.standard_t(4, size=800)
        line = quantile_line(signals, answers, level)
        exact = QuantileRegressor(quantile=level, alpha=0, fit_intercept=False).fit(signals, answers).coef_
        losses = [pinball(answers - signals @ found, level) for found in (line, exact)]
        assert losses[0] == pytest.approx(losses[1], rel=2e-3)
        assert (answers < signals @ line).mean() == pytest.approx(level, abs=0.006)


def test_scores_of_non_members_are_normal_quantiles_and_members_lie_above() -> None:
    """Margins are N(usual, 1) given the record; out-models know the usual margin with noise, which the lines learn."""
    evidence, members = gaussian_evidence(records=4000, models=8, shift=2.0, seed=0)
    scores = QuantileRegression().score(evidence)
    for level in (0.5, 0.9, 0.95, 0.99):
        assert (scores[~members] < norm.ppf(level)).mean() == pytest.approx(level, abs=0.02)
    assert auc(scores, members) > 0.85


def test_classes_have_quantiles_of_their_own() -> None:
    evidence, members = gaussian_evidence(records=3000, models=8, shift=0.0, seed=0)
    labels = np.arange(3000) % 2
    noisy = np.where(labels == 1, 4.0, 0.0)  # models happen to be surer of the second class, each by its own amount
    jumps = np.random.default_rng(0).exponential(size=(9, 3000)) * noisy
    loss = np.logaddexp(0, np.log(np.expm1(np.vstack([evidence.target_loss, evidence.shadow_loss]))) - jumps)
    known = {"target_loss": loss[0], "shadow_loss": loss[1:], "shadow_members": evidence.shadow_members}
    scores = QuantileRegression().score(Evidence(**known, labels=labels))
    high = scores[~members] > norm.ppf(0.9)
    assert high[labels[~members] == 1].mean() == pytest.approx(0.1, abs=0.06)
    assert high[labels[~members] == 0].mean() == pytest.approx(0.1, abs=0.06)


def test_no_in_model_is_asked() -> None:
    evidence, _ = gaussian_evidence(records=60, models=6, shift=1.0, seed=0)
    changed = dataclasses.replace(evidence, shadow_loss=np.where(evidence.shadow_members, 30.0, evidence.shadow_loss))
    assert (QuantileRegression().score(changed) == QuantileRegression().score(evidence)).all()
    assert QuantileRegression().queries(evidence).per_record == 4


@given(random_evidence(min_records=2, min_models=4))
def test_scores_are_finite_whatever_the_losses(evidence: Evidence) -> None:
    assert np.isfinite(QuantileRegression().score(evidence)).all()
