from __future__ import annotations

import numpy as np

from glasshouse.report.pictures.scores import reliability_of


def test_a_true_posterior_has_almost_no_error() -> None:
    random = np.random.default_rng(0)
    posteriors = random.random(100_000)
    found = reliability_of(posteriors, random.random(100_000) < posteriors)
    assert found.error < 0.01
    assert len(found.said) == 10


def test_the_error_equals_the_sum_written_out_by_hand() -> None:
    random = np.random.default_rng(1)
    posteriors, members = random.random(300) ** 2, random.random(300) < 0.5
    expected = 0.0
    for number in range(10):
        inside = (posteriors >= number / 10) & (posteriors < (number + 1) / 10)
        if inside.any():
            expected += inside.mean() * abs(posteriors[inside].mean() - members[inside].mean())
    assert abs(reliability_of(posteriors, members).error - expected) < 1e-12


def test_certainty_and_empty_bins_do_no_harm() -> None:
    found = reliability_of(np.array([0.0, 1.0, 1.0]), np.array([False, True, True]))
    assert (found.said, found.found, found.error) == ((0.0, 1.0), (0.0, 1.0), 0.0)
    assert found.counts == (1, 2)
