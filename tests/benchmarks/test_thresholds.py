"""A small version of benchmarks/statistics/thresholds.py, so that it keeps running and its limits keep holding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.scripts import benchmark


@pytest.mark.parametrize("leak", [0.0, 1.0])
def test_realised_rates_are_in_the_stated_intervals(leak: float) -> None:
    thresholds = benchmark("thresholds")
    trials = [thresholds.synthetic(records=1000, models=8, targets=6, leak=leak, seed=seed) for seed in range(5)]
    names = [name for name in (*thresholds.ATTACKS, *thresholds.OFFLINE) if name != "stacked"]
    found = thresholds.coverage(trials, attacks=names, fprs=[0.01])
    for name in names:
        assert found[name, 0.01][:, 1].mean() >= 0.9, name
        assert found[name, 0.01][:, 3].max() < 0.05, name
        realised, expected = found[name, 0.01][:, 0].mean(), found[name, 0.01][:, 4].mean()
        assert realised == pytest.approx(expected, abs=0.004), name


@pytest.mark.parametrize("kind", ["20 votes", "labels alone", "one decimal", "two decimals"])
def test_a_target_is_taken_for_another_kind_only_if_it_is(kind: str) -> None:
    thresholds = benchmark("thresholds")
    found = {}
    for name in ("none", "margins + 0.6"):
        made = {"records": 500, "models": 8, "targets": 1, "leak": 1.0, "kind": kind, "spread": 0.0}
        trials = [thresholds.synthetic(**made, **thresholds.CHANGED[name], seed=seed) for seed in range(25)]
        found[name] = np.mean([bool(thresholds.target_mismatch(trial.evidence(0))) for trial in trials])
    assert found["none"] <= 0.04
    assert found["margins + 0.6"] >= 0.8


@pytest.mark.parametrize("share", [0.1, 0.8])
def test_with_another_share_posteriors_are_calibrated_or_withheld(share: float) -> None:
    thresholds = benchmark("thresholds")
    made = {"records": 1500, "models": 8, "targets": 3, "leak": 1.0, "share": share, "seed": 0, "spread": 0.0}
    same_kind = thresholds.synthetic(**made)
    base, stacked = (thresholds.mismatch(same_kind, name, share=share) for name in ("base", "stacked"))
    assert base.given == 0
    assert base.error > base.floor + 0.02
    assert stacked.given == 3
    assert stacked.excess < 0.01
    assert stacked.fpr < 0.02


def test_real_models_trained_on_a_tenth_are_unlike_a_pool_of_halves_and_like_one_of_tenths() -> None:
    thresholds = benchmark("thresholds")
    estimator = thresholds.LogisticRegression(C=10, max_iter=400)
    found = []
    for pool_share in (0.5, 0.1):
        given = {"share": 0.1, "pool_share": pool_share, "shadows": 8, "targets": 2}
        found.append(thresholds.mismatch(thresholds.trained(estimator, **given), "base", share=0.1))
    assert (found[0].thresholds, found[0].given) == (0, 0)
    assert found[1].thresholds == 2
    assert np.isfinite(found[1].fpr)
