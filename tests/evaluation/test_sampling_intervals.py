from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from glasshouse.core.errors import InputError
from glasshouse.evaluation import auc, delong, tpr_at_fpr, tpr_intervals
from glasshouse.evaluation.intervals import Sampled, sampling_intervals
from glasshouse.evaluation.roc import roc


def drawn(strata: np.ndarray, rows: np.ndarray, members: np.ndarray) -> Sampled:
    return Sampled(strata=strata[rows], sizes=np.bincount(strata), members=int(members.sum()))


def population(size: int = 2000, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    strata, members = random.integers(4, size=size), random.random(size) < 0.5
    return random.normal(strata + members, 1.0), members, strata


def test_a_sample_of_everyone_has_no_error() -> None:
    scores, members, strata = population()
    found = sampling_intervals(scores, members, drawn(strata, np.arange(2000), members), fprs=[0.1, 0.01])
    assert found.auc_interval == pytest.approx((auc(scores, members),) * 2)
    for rate in found.rates:
        truth = tpr_at_fpr(scores, members, rate.wanted)
        assert rate.tpr == truth
        assert rate.interval.low <= truth <= rate.interval.high
        assert rate.interval.high - rate.interval.low < 0.02  # only members between two neighbouring non-members


def test_of_a_small_share_the_intervals_are_nearly_the_usual_ones() -> None:
    """Nothing is gained by knowing a size that is a thousand times as large, if strata say nothing."""
    random = np.random.default_rng(1)
    members = np.arange(600) % 2 == 0
    scores = random.normal(members, 1.0)
    sampled = Sampled(strata=np.arange(600) // 2 % 3, sizes=np.full(3, 10**6), members=1_500_000)
    found = sampling_intervals(scores, members, sampled, fprs=[0.05])
    assert found.auc_interval == pytest.approx(delong(scores, members), abs=2e-3)
    assert found.rates[0].interval == pytest.approx(tpr_intervals(roc(scores, members), [0.05])[0], abs=2e-3)


def test_the_variance_is_that_of_all_samples_that_could_have_been_drawn() -> None:
    """The dull way: draw again and again from the same records, two from each of many strata."""
    scores, members, strata = population(400, seed=3)
    random = np.random.default_rng(0)
    estimates, reach = [], []
    for _ in range(400):
        rows = np.concatenate([random.choice(np.flatnonzero(strata == one), 25, replace=False) for one in range(4)])
        found = sampling_intervals(scores[rows], members[rows], drawn(strata, rows, members), fprs=[])
        estimates.append(found.auc)
        reach.append((found.auc_interval.high - found.auc_interval.low) / 2 / 1.96)
    assert np.mean(reach) == pytest.approx(np.std(estimates), rel=0.15)
    assert np.mean(estimates) == pytest.approx(auc(scores, members), abs=0.01)


def test_intervals_hold_the_figures_of_all_records() -> None:
    """A small version of benchmarks/graphs/sample.py: 60 draws, and 95 % of them should hold the truth."""
    scores, members, strata = population(seed=5)
    truths = [auc(scores, members), *(tpr_at_fpr(scores, members, rate) for rate in (0.05,))]
    held = np.zeros(2)
    random = np.random.default_rng(0)
    for _ in range(60):
        rows = random.choice(2000, 600, replace=False)
        found = sampling_intervals(scores[rows], members[rows], drawn(strata, rows, members), fprs=[0.05])
        intervals = [found.auc_interval, *(rate.interval for rate in found.rates)]
        held += [low <= truth <= high for (low, high), truth in zip(intervals, truths, strict=True)]
    assert (held / 60 > 0.86).all()  # three standard errors below


def test_without_a_threshold_to_find_the_ends_are_those_of_the_hypergeometric_distribution() -> None:
    """Thirty members above all non-members, and the others below them: only the number of members is uncertain."""
    members = np.arange(200) < 100
    scores = np.where(members & (np.arange(200) < 30), 2.0, np.where(members, 0.0, 1.0)) + np.arange(200) / 1000
    sampled = Sampled(strata=np.zeros(200, dtype=int), sizes=np.array([1000]), members=500)
    low, high = sampling_intervals(scores, members, sampled, fprs=[0.2]).rates[0].interval

    def at_least_thirty(total: int) -> float:
        """Ties with what was found count half, as in a mid-p interval."""
        return float(hypergeom.sf([29, 30], 500, total, 100).mean())

    assert at_least_thirty(round(500 * low)) >= 0.025 > at_least_thirty(round(500 * low) - 1)
    assert at_least_thirty(round(500 * high)) <= 0.975 < at_least_thirty(round(500 * high) + 1)


def test_another_sample_than_the_one_described_is_refused() -> None:
    sampled = Sampled(strata=np.zeros(3, dtype=int), sizes=np.array([9]), members=4)
    with pytest.raises(InputError, match="does not describe how these records were drawn"):
        sampling_intervals([1.0, 2.0], [True, False], sampled, fprs=[])
