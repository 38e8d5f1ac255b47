from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from glasshouse.graph.sampling import posterior
from tests.graph.rule.two_layers.plain_kernels import in_python

KERNELS = in_python(posterior)
VALUES = st.lists(st.floats(-2000, 2000), min_size=2, max_size=8).map(np.array)


@given(losses=VALUES)
def test_the_log_ratio_is_that_of_the_joint_posterior_however_large_the_losses(losses: np.ndarray) -> None:
    expected = -losses[0] - (logsumexp(-losses[1:]) - np.log(len(losses) - 1))
    everyone = np.ones(len(losses) - 1, np.bool_)
    assert KERNELS.log_ratio(losses, everyone) == pytest.approx(expected, abs=1e-9)
    assert posterior.log_odds(losses[:1], losses[1:, None])[0] == pytest.approx(expected, abs=1e-9)
    one = torch.from_numpy(losses)
    assert float(posterior.log_odds(one[0], one[1:])) == pytest.approx(expected, abs=1e-9)


@given(signal=VALUES, prior=st.floats(-5, 5), seed=st.integers(0, 99))
def test_the_probability_is_the_rule_over_the_models_that_are_usable(
    signal: np.ndarray, prior: float, seed: int
) -> None:
    usable = np.random.default_rng(seed).random(len(signal) - 1) < 0.5
    usable[seed % len(usable)] = True
    told = signal[1:][usable]
    expected = expit(-signal[0] - (logsumexp(-told) - np.log(len(told))) + prior)
    with np.errstate(over="ignore"):
        assert KERNELS.membership_probability(signal, prior, usable) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("prior", "certain"), [(-np.inf, 0.0), (np.inf, 1.0)])
def test_a_certain_prior_decides(prior: float, certain: float) -> None:
    assert KERNELS.membership_probability(np.array([5.0, 3.0]), prior, np.array([True])) == certain


def test_log_odds_of_all_nodes_are_those_of_the_kernel_node_by_node() -> None:
    """One formula: for arrays, for tensors, and written out by hand."""
    random = np.random.default_rng(0)
    losses, usable = random.exponential(2.0, (4, 6)), random.random((3, 6)) < 0.5
    usable[1] = True
    assert not usable.all()
    found = posterior.log_odds(losses[0], losses[1:], usable)
    for v in range(6):
        used = [math.exp(-losses[1 + k, v]) for k in range(3) if usable[k, v]]
        assert found[v] == pytest.approx(-losses[0, v] - math.log(sum(used) / len(used)))
        kernel = posterior.log_ratio(np.ascontiguousarray(losses[:, v]), np.ascontiguousarray(usable[:, v]))
        assert found[v] == pytest.approx(kernel, abs=1e-12)
    tensors = torch.from_numpy(losses)
    np.testing.assert_allclose(posterior.log_odds(tensors[0], tensors[1:], torch.from_numpy(usable)), found)
