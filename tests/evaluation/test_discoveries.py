"""Lists of records with a bounded share of errors."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.discoveries import conformal_p_values, discovery_levels
from tests.strategies import scores_and_members


@settings(max_examples=40)
@given(st.lists(scores_and_members(), min_size=1, max_size=4), hnp.arrays(np.float64, 5, elements=st.floats(-2, 2)))
def test_a_p_value_counts_simulated_non_members_one_by_one(
    pairs: list[tuple[FloatArray, BoolArray]], scores: FloatArray
) -> None:
    others = [float(s) for theirs, members in pairs for s, member in zip(theirs, members, strict=True) if not member]
    plain = [(1 + sum(other >= score for other in others)) / (1 + len(others)) for score in scores]
    assert conformal_p_values(scores, pairs).tolist() == plain


@given(hnp.arrays(np.float64, st.integers(1, 20), elements=st.sampled_from([0.01, 0.02, 0.05, 0.3, 1.0])))
def test_a_record_is_listed_from_its_level_on(p_values: FloatArray) -> None:
    """Benjamini and Hochberg step by step: the largest k with p_(k) ≤ k·level / N, and the first k are listed."""
    levels = discovery_levels(p_values)
    for level in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        ranked = np.sort(p_values)
        kept = [k for k in range(1, len(ranked) + 1) if ranked[k - 1] <= k * level / len(ranked) * (1 + 1e-12)]
        listed = p_values <= ranked[max(kept) - 1] if kept else np.zeros(len(ranked), dtype=bool)
        np.testing.assert_array_equal(levels <= level * (1 + 1e-12), listed)
