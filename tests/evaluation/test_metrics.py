from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given

from glasshouse import InputError
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import across_targets, evaluate, tpr_at_fpr
from glasshouse.evaluation.metrics import resolvable
from tests.strategies import scores_and_members


@given(scores_and_members())
def test_figures_agree_with_their_own_functions_and_lie_in_their_intervals(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = np.append(pair[0], 0.0), np.append(pair[1], False)  # two non-members or more, to resolve one half
    metrics = evaluate(scores, members, fprs=[0.5])
    rate = metrics.rates[0]
    assert rate.tpr == tpr_at_fpr(scores, members, 0.5)
    assert rate.interval.low <= rate.tpr <= rate.interval.high
    assert rate.fpr <= rate.wanted
    brute = max((1 + (scores >= t)[members].mean() - (scores >= t)[~members].mean()) / 2 for t in [np.inf, *scores])
    assert metrics.balanced_accuracy == pytest.approx(brute)
    assert metrics.balanced_accuracy_interval.low <= brute <= metrics.balanced_accuracy_interval.high + 1e-12


def test_default_rates_are_those_that_the_sample_resolves() -> None:
    assert resolvable(None, 1000) == (0.01, 0.001)
    assert resolvable(None, 999) == (0.01,)
    assert resolvable(None, 99) == ()


def test_a_rate_that_the_sample_cannot_resolve_is_said() -> None:
    with pytest.raises(InputError, match="with 500 non-members a false-positive rate of 0.001 is not measurable"):
        evaluate(np.arange(1000.0), np.arange(1000) < 500, fprs=[0.01, 0.001])
    with pytest.raises(InputError, match="not a rate"):
        evaluate(np.arange(10.0), np.arange(10) < 5, fprs=[1.5])


def test_mean_and_spread_over_targets() -> None:
    random = np.random.default_rng(0)
    members = np.arange(200) < 100
    several = [evaluate(random.normal(size=200) + members, members, fprs=[0.05]) for _ in range(5)]
    found = across_targets(several)
    areas = [metrics.auc for metrics in several]
    assert found["auc"][:3] == pytest.approx((np.mean(areas), np.std(areas, ddof=1), 5))
    reach = 2.776445 * np.std(areas, ddof=1) / np.sqrt(5)  # Student's t with 4 degrees of freedom, from a table
    assert found["auc"].interval == pytest.approx((np.mean(areas) - reach, np.mean(areas) + reach))
    assert set(found) == {"auc", "balanced_accuracy", "tpr@0.05"}
    assert np.isnan(across_targets(several[:1])["auc"].std)
    assert np.isnan(across_targets(several[:1])["auc"].interval).all()


@pytest.mark.parametrize("targets", [2, 5, 10])
def test_the_interval_over_targets_covers_the_mean_of_all_targets(targets: int) -> None:
    """Figures that vary over targets as a normal distribution: 95 % of the intervals hold their mean."""
    one = evaluate([2.0, 1.0, 1.5, 0.0], [1, 1, 0, 0], fprs=[])
    areas = np.random.default_rng(0).normal(0.7, 0.02, size=(1500, targets))
    found = [across_targets([dataclasses.replace(one, auc=area) for area in some])["auc"].interval for some in areas]
    assert 0.93 < np.mean([low <= 0.7 <= high for low, high in found]) < 0.97


def test_targets_that_cannot_be_averaged_are_refused() -> None:
    with pytest.raises(InputError, match="nothing to average"):
        across_targets([])
    members = np.arange(40) < 20
    with pytest.raises(InputError, match="different false-positive rates"):
        across_targets([evaluate(np.arange(40.0), members, fprs=[rate]) for rate in (0.1, 0.2)])
