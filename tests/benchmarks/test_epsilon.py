"""A small version of benchmarks/statistics/epsilon.py."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.scripts import benchmark


def test_guesses_on_both_sides_gain_over_the_former_bound_and_stay_below_the_truth() -> None:
    epsilon = benchmark("epsilon")
    mechanism, truth = epsilon.gaussian(1.0)
    found, verdicts = epsilon.repeat(mechanism, records=1000, repeats=15)
    former, pure, free, gaussian, independent = found.mean(axis=0)
    assert former < free <= pure
    assert free < gaussian < independent < truth.epsilon
    assert (epsilon.above(found, truth) <= 0.2).all()  # three of fifteen
    before = np.mean([epsilon.pairs(epsilon._guesses(one, 1000)) for one in verdicts])
    assert 1.0 < np.mean([one.gaussian.mu for one in verdicts]) / before < 1.2  # the same guesses, by the recursion
