from __future__ import annotations

import tracemalloc
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import norm

from glasshouse import Evidence, InputError
from glasshouse.attacks import LiRA
from glasshouse.evaluation import auc
from tests.strategies import gaussian_evidence, random_evidence


def margins(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    return -np.log(np.expm1(evidence.target_loss)), -np.log(np.expm1(evidence.shadow_loss))


def test_record_variances_give_the_closed_form_of_two_gaussians() -> None:
    evidence, _ = gaussian_evidence(records=50, models=8, shift=1.0, seed=0)
    target, shadows = margins(evidence)
    found = LiRA(variance="record").score(evidence)
    offline = LiRA(mode="offline", variance="record").score(evidence)
    for v in range(50):
        inside, outside = shadows[evidence.shadow_members[:, v], v], shadows[~evidence.shadow_members[:, v], v]
        sides = [norm(side.mean(), side.std(ddof=1)) for side in (inside, outside)]
        assert found[v] == pytest.approx(sides[0].logpdf(target[v]) - sides[1].logpdf(target[v]), rel=1e-6)
        assert offline[v] == pytest.approx(sides[1].logcdf(target[v]), rel=1e-6)


def test_the_global_variance_is_the_spread_around_each_records_mean() -> None:
    evidence, _ = gaussian_evidence(records=50, models=8, shift=1.0, seed=0)
    target, shadows = margins(evidence)
    means, spreads = [], []
    for who in (evidence.shadow_members, ~evidence.shadow_members):
        mean = np.array([shadows[who[:, v], v].mean() for v in range(50)])
        squares = sum(((shadows[who[:, v], v] - mean[v]) ** 2).sum() for v in range(50))
        means.append(mean)
        spreads.append(np.sqrt(squares / (50 * 3)))
    expected = norm.logpdf(target, means[0], spreads[0]) - norm.logpdf(target, means[1], spreads[1])
    np.testing.assert_allclose(LiRA(variance="global").score(evidence), expected, rtol=1e-6)


def test_with_many_shadows_it_reaches_the_best_possible_area() -> None:
    """Margins N(μ_v, 1) against N(μ_v + d, 1): no attack beats Φ(d / √2), and LiRA knows both sides in the limit."""
    evidence, members = gaussian_evidence(records=4000, models=128, shift=1.5, seed=1, difficulty=2.0)
    best = norm.cdf(1.5 / np.sqrt(2))
    for variance in ("auto", "record", "global"):
        assert auc(LiRA(variance=variance).score(evidence), members) == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize(("models", "like"), [(8, "global"), (30, "global"), (32, "record")])
def test_auto_pools_the_variance_below_sixteen_models_a_side(models: int, like: Literal["global", "record"]) -> None:
    evidence, _ = gaussian_evidence(records=40, models=models, shift=1.0, seed=0)
    assert (LiRA().score(evidence) == LiRA(variance=like).score(evidence)).all()


def test_few_shadows_lose_less_with_one_variance() -> None:
    areas = []
    for seed in range(5):
        evidence, members = gaussian_evidence(records=2000, models=8, shift=1.5, seed=seed)
        areas.append([auc(LiRA(variance=v).score(evidence), members) for v in ("global", "record")])
    pooled, own = np.mean(areas, axis=0)
    assert pooled > own


@given(random_evidence(min_models=4))
def test_scores_are_finite_whatever_the_losses(evidence: Evidence) -> None:
    assert np.isfinite(LiRA().score(evidence)).all()


def test_too_few_models_for_a_spread_are_refused() -> None:
    evidence = Evidence(target_loss=[1.0, 1.0], shadow_loss=[[1.0, 1.0]] * 2, shadow_members=[[1, 0], [0, 1]])
    with pytest.raises(InputError, match="Train 4 or more shadow models"):
        LiRA().score(evidence)
    with pytest.raises(InputError, match="this attack needs 2"):
        LiRA(variance="record").score(evidence)
    with pytest.raises(InputError, match="not one of auto, record, global"):
        LiRA(variance="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_simulated_targets_need_no_margins_of_the_whole_pool(
    mode: Literal["online", "offline"], monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, _ = gaussian_evidence(records=100_000, models=8, shift=1.0, seed=0)
    monkeypatch.setattr("glasshouse.attacks.in_out_moments._ROOM", 100_000)
    attack = LiRA(mode=mode, variance="global")
    tracemalloc.start()
    try:
        for _ in attack.simulated_scores(evidence):
            pass
        attack.flag_scores(evidence)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * evidence.shadow_loss.nbytes  # over 4 with margins and Gaussians of all sets
