from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.attacks.learners import Scale


@given(st.integers(2, 60), st.floats(0.0, 0.3), st.integers(0, 10**6))
def test_it_is_clipping_and_standardising_written_out(count: int, tail: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, fresh = (random.standard_t(2, size=(size, 3)) * [1e-6, 1, 1e6] + 5 for size in (count, 10))
    found = Scale.of(rows, tail=tail).apply(fresh)
    for number in range(3):
        low, high = np.quantile(rows[:, number], [tail, 1 - tail])
        seen = np.array([min(max(value, low), high) for value in rows[:, number]])
        asked = np.array([min(max(value, low), high) for value in fresh[:, number]])
        np.testing.assert_allclose(found[:, number], (asked - seen.mean()) / (seen.std() + 1e-9), rtol=1e-6, atol=1e-9)


def test_a_constant_feature_stays_small() -> None:
    rows = np.full((1000, 1), 0.1)
    assert np.abs(Scale.of(rows, tail=0.01).apply(np.array([[0.1], [1e300], [-1e300]]))).max() <= 1
