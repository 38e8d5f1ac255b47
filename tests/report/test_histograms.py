from __future__ import annotations

import numpy as np
from hypothesis import given

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.report.pictures.scores import histogram_of
from tests.strategies import scores_and_members


@given(pair=scores_and_members())
def test_every_record_is_counted_once_in_its_own_group(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = pair
    found = histogram_of(scores, members)
    assert found.others is not None
    assert (sum(found.members), sum(found.others)) == (members.sum(), (~members).sum())
    alone = histogram_of(scores, None)
    assert alone.others is None
    assert sum(alone.members) == len(scores)


def test_far_scores_fall_into_the_last_bins_and_are_told() -> None:
    scores = np.concatenate([np.linspace(0, 1, 998), [1e9, -1e9]])
    found = histogram_of(scores, None)
    assert found.edges[-1] < 2
    assert found.cut >= 2


def test_scores_that_are_all_alike_have_a_histogram() -> None:
    found = histogram_of(np.full(5, 3.0), None)
    assert sum(found.members) == 5
    assert found.edges[0] < 3.0 < found.edges[-1]
