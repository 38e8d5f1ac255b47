from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import rankdata

from glasshouse import Evidence
from glasshouse.attacks import BASE, RMIA
from glasshouse.attacks.base import Statistic, best_share
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.numerics import log_mean_exp
from glasshouse.evaluation import auc
from glasshouse.evidence import Mode
from tests.strategies import gaussian_evidence


def statistic_of(loss: FloatArray, expected: FloatArray) -> Statistic:
    return lambda share: -loss - share * expected


def mixed(loss: FloatArray, expected: FloatArray) -> Statistic:
    """RMIA's ratio as it is written in its paper, in logarithms."""

    def ratio(a: float) -> FloatArray:
        if a == 1:
            return np.asarray(-loss - expected)
        return np.asarray(-loss - np.logaddexp(expected + np.log1p(a), np.log1p(-a)) + np.log(2))

    return ratio


def area(scores: FloatArray, members: BoolArray) -> float:
    """By the ranks of all scores."""
    inside = members.sum()
    return float((rankdata(scores)[members].sum() - inside * (inside + 1) / 2) / (inside * (len(scores) - inside)))


def slow_best_share(evidence: Evidence, statistic: Callable[[FloatArray, FloatArray], Statistic], mode: Mode) -> float:
    """Every number of both grids, on all records of all simulated targets, each with its own copy of the pool."""
    simulated = []
    for one in evidence.simulated():
        expected = log_mean_exp(-one.view.shadow_loss, where=one.view.references(mode))
        simulated.append((statistic(one.view.target_loss, expected), one.members))

    def quality(share: float) -> float:
        return float(np.mean([area(scores(share), members) for scores, members in simulated]))

    tenth = max(np.linspace(0.0, 1.0, 11).round(2).tolist(), key=quality)
    near = np.arange(tenth - 0.09, tenth + 0.095, 0.01).round(2)
    return float(max([tenth, *near[(near >= 0) & (near <= 1)].tolist()], key=quality))


def test_the_best_of_all_hundredths_is_found() -> None:
    evidence, _ = gaussian_evidence(records=600, models=6, shift=1.0, seed=3, difficulty=2.0)

    def quality(share: float) -> float:
        found = []
        for one in evidence.simulated():
            expected = log_mean_exp(-one.view.shadow_loss)
            found.append(auc(statistic_of(one.view.target_loss, expected)(share), one.members))
        return float(np.mean(found))

    brute = max(quality(share) for share in np.arange(0, 1.005, 0.01))
    found = best_share(evidence, statistic_of, mode="online", name="share")
    assert quality(found) == pytest.approx(brute, abs=2e-4)


@pytest.mark.parametrize(("records", "models"), [(300, 4), (500, 8), (4500, 16)])
def test_the_pick_is_that_of_a_search_without_any_shortcut(records: int, models: int) -> None:
    for seed in range(3 if records < 1000 else 1):
        evidence, _ = gaussian_evidence(records=records, models=models, shift=1.0, seed=seed, difficulty=2.0)
        scale, a = BASE(mode="offline").tuned(evidence).scale, RMIA(mode="offline").tuned(evidence).offline_a
        assert scale == slow_best_share(evidence, statistic_of, "offline")
        assert a == slow_best_share(evidence, mixed, "offline")
