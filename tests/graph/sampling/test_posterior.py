from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from glasshouse.graph.sampling import chain_state
from tests.graph.rule.two_layers.plain_kernels import in_python

KERNELS = in_python(chain_state)
VALUES = st.lists(st.floats(-2000, 2000), min_size=2, max_size=8).map(np.array)


@given(losses=VALUES)
def test_the_log_ratio_is_that_of_the_joint_posterior_however_large_the_losses(losses: np.ndarray) -> None:
    expected = -losses[0] - (logsumexp(-losses[1:]) - np.log(len(losses) - 1))
    assert KERNELS.log_ratio(losses) == pytest.approx(expected, abs=1e-9)


@given(signal=VALUES, prior=st.floats(-5, 5), seed=st.integers(0, 99))
def test_the_probability_is_the_rule_over_the_models_that_may_speak(
    signal: np.ndarray, prior: float, seed: int
) -> None:
    asked = np.random.default_rng(seed).random(len(signal) - 1) < 0.5
    asked[seed % len(asked)] = True
    told = signal[1:][asked]
    expected = expit(-signal[0] - (logsumexp(-told) - np.log(len(told))) + prior)
    with np.errstate(over="ignore"):
        assert KERNELS.membership_probability(signal, prior, asked) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("prior", "certain"), [(-np.inf, 0.0), (np.inf, 1.0)])
def test_a_certain_prior_decides(prior: float, certain: float) -> None:
    assert KERNELS.membership_probability(np.array([5.0, 3.0]), prior, np.array([True])) == certain


def test_ratios_of_all_nodes_are_those_of_the_models_that_may_speak_added_up() -> None:
    random = np.random.default_rng(0)
    losses, asked = random.exponential(2.0, (4, 6)), random.random((6, 3)) < 0.5
    asked[:, 1] = True
    expected = 0.0
    for v in range(6):
        heard = [math.exp(-losses[1 + k, v]) for k in range(3) if asked[v, k]]
        expected += -losses[0, v] - math.log(sum(heard) / len(heard))
    assert not asked.all()
    assert chain_state.summed_ratios(losses, asked) == pytest.approx(expected)
