from __future__ import annotations

import itertools

import numpy as np
import pytest

from glasshouse.attacks.perceptron import PENALTY, Activation, Adam, Parameters, forward, one_pass, relu, silu
from glasshouse.core.arrays import FloatArray

WIDTHS = (3, 5, 4, 1)


def some_networks(count: int, seed: int = 0) -> Parameters:
    values = Parameters.of(WIDTHS, count)
    values.all[:] = np.random.default_rng(seed).normal(size=values.all.shape)
    return values


def examples(records: int, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    return random.normal(size=(1, records, 3)), (random.random((1, records, 1)) < 0.5).astype(float)


@pytest.mark.parametrize("activation", [relu, silu])
def test_the_gradient_is_that_of_the_loss_written_out(activation: Activation) -> None:
    """The twin: the mean log loss with its penalty, by differences of a millionth in every parameter."""
    values, (x, labels) = some_networks(2), examples(20)

    def loss(network: int) -> float:
        weights, biases = [one[network] for one in values.weights], [one[network, 0] for one in values.biases]
        odds = forward(weights, biases, x[0], activation)
        entropy = np.logaddexp(0, np.where(labels[0] > 0, -odds, odds)).sum()
        return float(entropy + 0.5 * PENALTY * values.penalty[network]) / len(x[0])

    steps = Adam(values)
    one_pass(steps, x, labels, batch=20, activation=activation, rates=[0.0])
    for network, parameter in itertools.product(range(2), range(values.all.shape[1])):
        kept, both = values.all[network, parameter], []
        for away in (-1e-6, 1e-6):
            values.all[network, parameter] = kept + away
            both.append(loss(network))
        values.all[network, parameter] = kept
        assert steps.gradient.all[network, parameter] == pytest.approx((both[1] - both[0]) / 2e-6, abs=1e-6)


def test_networks_that_share_their_records_are_those_with_copies_of_them() -> None:
    x, labels = examples(70)
    found = []
    for shown in ((x, labels), (np.repeat(x, 3, axis=0), np.repeat(labels, 3, axis=0))):
        steps = Adam(some_networks(3))
        one_pass(steps, *shown, batch=32, activation=silu, rates=itertools.repeat(0.01))
        found.append(steps.values.all)
    np.testing.assert_array_equal(found[0], found[1])


def test_a_pass_ends_with_its_rates() -> None:
    x, labels = examples(70)
    kept = Adam(some_networks(1))
    one_pass(kept, x, labels, batch=10, activation=relu, rates=iter([0.01, 0.02]))
    twin = Adam(some_networks(1))
    for part, rate in ((slice(0, 10), 0.01), (slice(10, 20), 0.02)):
        one_pass(twin, x[:, part], labels[:, part], batch=10, activation=relu, rates=[rate])
    np.testing.assert_array_equal(kept.values.all, twin.values.all)
