from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import roc, tpr_intervals
from glasshouse.report.pictures.scores import curve_of
from tests.strategies import scores_and_members


@given(pair=scores_and_members())
def test_every_point_kept_is_a_point_of_the_exact_curve(pair: tuple[FloatArray, BoolArray]) -> None:
    exact = roc(*pair)
    kept = curve_of(exact)
    points = set(zip(exact.fpr.tolist(), exact.tpr.tolist(), strict=True))
    assert set(zip(kept.fpr, kept.tpr, strict=True)) <= points
    assert (kept.fpr[-1], kept.tpr[-1]) == (1.0, 1.0)


def test_a_long_curve_becomes_short_and_keeps_its_rates_at_every_decade() -> None:
    random = np.random.default_rng(0)
    members = np.arange(100_000) < 50_000
    exact = roc(random.normal(size=100_000) + members, members)
    kept = curve_of(exact)
    assert len(kept.fpr) <= 160
    for count in (1, 5, 50_000):
        at = exact.point_at(count / 50_000)
        assert exact.tpr[at] in kept.tpr


def test_bands_are_the_intervals_of_the_rates() -> None:
    members = np.arange(2000) < 1000
    exact = roc(np.random.default_rng(0).normal(size=2000) + members, members)
    kept = curve_of(exact)
    assert all(low <= tpr <= high for low, tpr, high in zip(kept.low, kept.tpr, kept.high, strict=True))
    place = kept.fpr.index(0.01)
    (exactly,) = tpr_intervals(exact, [0.01])
    assert (kept.low[place], kept.high[place]) == pytest.approx(exactly, abs=0.004)
