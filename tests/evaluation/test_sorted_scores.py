"""Scores that are sorted once, against the ROC and against ranks that are counted one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import roc
from glasshouse.evaluation.roc import SortedScores
from tests.strategies import scores_and_members


@settings(deadline=None)
@given(scores_and_members(), st.floats(0.01, 0.99))
def test_rates_and_cuts_are_those_of_the_roc(pair: tuple[FloatArray, BoolArray], fpr: float) -> None:
    found, curve = SortedScores.of(*pair), roc(*pair)
    assert found.area == curve.area
    assert found.first_fpr == curve.fpr[1]
    point = curve.point_at(fpr)
    rate, reached = found.rate_at(fpr)
    assert reached == (point > 0)
    if reached:
        assert (rate, found.cut_at(fpr)) == (curve.tpr[point], curve.thresholds[point])
    else:
        assert rate == curve.tpr[1] * fpr / curve.fpr[1]
        assert found.cut_at(fpr) > pair[0].max()
