"""Precision and advantage: the formulas, their ends, and that their intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.evaluation import Interval, Threshold, clopper_pearson
from glasshouse.evaluation.thresholds import PRIORS, FlaggedRates, flagged_rates

THRESHOLD = Threshold(0.01, 0.5, "mean", 0.01, Interval(0.0, 0.02), 8)


def accused(hits: int, members: int, wrong: int, others: int) -> FlaggedRates:
    scores = np.repeat([0.5, 0.0, 1.0, 0.0], [hits, members - hits, wrong, others - wrong])
    return flagged_rates(THRESHOLD, THRESHOLD.decide(scores), np.arange(members + others) < members)


@settings(max_examples=40)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_precision_is_the_share_of_members_among_the_accused_of_a_town(
    members: int, others: int, data: st.DataObject
) -> None:
    """A town of a million, people counted one by one, beside Bayes' formula."""
    hits, wrong = data.draw(st.integers(0, members)), data.draw(st.integers(0, others))
    found = accused(hits, members, wrong, others)
    for prior, one in zip(PRIORS, found.precisions, strict=True):
        right, false = 1e6 * prior * hits / members, 1e6 * (1 - prior) * wrong / others
        if one.value is None:
            assert right + false == 0
            assert one.interval == (0.0, 1.0)
        else:
            assert one.value == pytest.approx(right / (right + false))
            assert 0 <= one.interval.low <= one.value <= one.interval.high <= 1
    assert found.advantage == pytest.approx(hits / members - wrong / others)
    low, high = found.advantage_interval
    assert -1 <= low <= found.advantage + 1e-12
    assert found.advantage - 1e-12 <= high <= 1
    assert found.tpr_interval == clopper_pearson(hits, members)
    assert found.fpr_interval == clopper_pearson(wrong, others)


def test_nobody_wrongly_accused_does_not_mean_a_sure_accusation() -> None:
    first = accused(5, 100, 0, 100).precisions[0]
    assert first.value == 1.0
    assert first.interval.low < 0.1
    assert first.interval.high == 1.0


def test_the_interval_is_inside_the_rectangle_that_always_covers() -> None:
    """Both rates at the worst ends of their 97.5 % intervals give a valid interval; ours must not be wider."""
    found = accused(30, 100, 4, 100)
    tpr, fpr = clopper_pearson(30, 100, confidence=0.975), clopper_pearson(4, 100, confidence=0.975)
    assert tpr.low - fpr.high < found.advantage_interval.low
    assert found.advantage_interval.high < tpr.high - fpr.low
    assert 1 / (1 + fpr.high / tpr.low) < found.precisions[2].interval.low
