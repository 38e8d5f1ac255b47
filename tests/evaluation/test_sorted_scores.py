"""Scores that are sorted once, against the ROC and against ranks that are counted one by one."""

from __future__ import annotations

import numpy as np
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


@settings(deadline=None)
@given(scores_and_members(), st.integers(0, 60))
def test_members_at_the_top_are_counted_unless_a_tie_decides(pair: tuple[FloatArray, BoolArray], count: int) -> None:
    scores, members = pair
    count = min(count, len(scores))
    ways = {int(members[np.lexsort((turn * np.arange(len(scores)), -scores))][:count].sum()) for turn in (1, -1)}
    ways |= {int(members[np.lexsort((turn * members, -scores))][:count].sum()) for turn in (1, -1)}
    found = SortedScores.of(scores, members).members_in_top(count)
    assert {found} == ways if found is not None else 0 < count < len(scores)
