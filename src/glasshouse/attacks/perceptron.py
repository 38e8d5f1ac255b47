"""A small perceptron for two classes, trained as scikit-learn's is, without the checks that it repeats in every step.

An audit trains one for every simulated target. Their steps are so small (256 records, 64 units) that scikit-learn
spends most of the time on checks. The weights are the same up to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy
from sklearn.utils import check_random_state, gen_batches, shuffle

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.thread_counts import thread_counts

__all__ = ["Perceptron", "train_perceptron"]

_RATE, _FIRST, _SECOND, _SMALL = 1e-3, 0.9, 0.999, 1e-8  # Adam's
_PENALTY = 1e-4  # on the squared weights
_LEAST = 1e-4  # a loss that falls by less has not fallen
_PATIENCE = 10  # passes without a fall, after which the training ends


@dataclass(frozen=True, eq=False)
class Perceptron:
    """Hidden layers of ReLUs and one logistic unit.

    Args:
        weights: one matrix [inputs, units] per layer.
        biases: one vector [units] per layer.

    Example:
        >>> network = Perceptron([np.array([[1.0]]), np.array([[2.0]])], [np.zeros(1), np.zeros(1)])
        >>> network.probabilities(np.array([[0.0], [1.0]])).round(2)
        array([0.5 , 0.88])
    """

    weights: Sequence[FloatArray]
    biases: Sequence[FloatArray]

    def probabilities(self, x: FloatArray) -> FloatArray:
        """Of the class "true", [N], from features [N, F]."""
        return self.layers(x)[-1][:, 0]

    def layers(self, x: FloatArray) -> list[FloatArray]:
        """The values of every layer from the features on, each [N, units]."""
        values = [x]
        for weight, bias in zip(self.weights, self.biases, strict=True):
            value = values[-1] @ weight
            value += bias
            values.append(np.maximum(value, 0, out=value) if len(values) < len(self.weights) else expit(value))
        return values


def train_perceptron(
    x: FloatArray, labels: BoolArray, *, hidden: Sequence[int], epochs: int, batch: int = 256, seed: int = 0
) -> Perceptron:
    """Train by Adam, as ``sklearn.neural_network.MLPClassifier`` does with its default settings.

    Args:
        x: [N, F] features, scaled.
        labels: [N].
        hidden: widths of the hidden layers.
        epochs: passes over the records, at most.
        batch: records per step.
        seed: of the first weights and of the order of the records, below 2^32.

    Example:
        >>> x = np.linspace(-2, 2, 64)[:, None]
        >>> network = train_perceptron(x, x[:, 0] > 0, hidden=[8], epochs=200, batch=8)
        >>> bool(network.probabilities(x)[-1] > 0.9)
        True
    """
    random = check_random_state(seed)
    widths = [x.shape[1], *hidden, 1]
    parameters = _Parameters.of(widths)
    for weight, bias in zip(parameters.weights, parameters.biases, strict=True):
        bound = np.sqrt(6.0 / sum(weight.shape))
        weight[:] = random.uniform(-bound, bound, weight.shape)
        bias[:] = random.uniform(-bound, bound, bias.shape)
    network = Perceptron(parameters.weights, parameters.biases)
    steps = _Adam(parameters.all)
    order, lowest, waited = np.arange(len(x)), np.inf, 0
    with thread_counts().limit(
        limits=1
    ):  # its layers are too small for several threads, which would mostly wait for each other
        for _ in range(epochs):
            order = shuffle(order, random_state=random)
            loss = _one_pass(network, parameters, steps, x[order], labels[order, None].astype(np.float64), batch)
            waited = waited + 1 if loss > lowest - _LEAST else 0
            lowest = min(lowest, loss)
            if waited > _PATIENCE:
                break
    return network


@dataclass(frozen=True, eq=False)
class _Parameters:
    """All numbers of a network in one vector, and the same memory as weights and biases."""

    all: FloatArray
    weights: list[FloatArray]
    biases: list[FloatArray]

    @classmethod
    def of(cls, widths: Sequence[int]) -> _Parameters:
        shapes = list(itertools.pairwise(widths))
        cuts = np.cumsum([0, *(a * b for a, b in shapes), *(b for _, b in shapes)])
        everything = np.zeros(cuts[-1])
        parts = [everything[first:last] for first, last in itertools.pairwise(cuts)]
        count = len(shapes)
        weights = [part.reshape(shape) for part, shape in zip(parts[:count], shapes, strict=True)]
        return cls(everything, weights, parts[count:])


class _Adam:
    """Adam (Kingma and Ba, 2015) on one vector, which it changes in place."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        self._mean, self._square, self._count = np.zeros_like(values), np.zeros_like(values), 0

    def step(self, gradient: FloatArray) -> None:
        """One step down the gradient [parameters]."""
        self._count += 1
        self._mean = _FIRST * self._mean + (1 - _FIRST) * gradient
        self._square = _SECOND * self._square + (1 - _SECOND) * gradient**2
        rate = _RATE * np.sqrt(1 - _SECOND**self._count) / (1 - _FIRST**self._count)
        self.values += -rate * self._mean / (np.sqrt(self._square) + _SMALL)


def _one_pass(
    network: Perceptron, parameters: _Parameters, steps: _Adam, x: FloatArray, labels: FloatArray, batch: int
) -> float:
    """One step per batch of the records in their order; returns the mean loss."""
    gradient = _Parameters.of([x.shape[1], *(len(bias) for bias in network.biases)])
    answers, penalty = np.empty_like(labels), 0.0
    squared = sum(weight.size for weight in network.weights)
    for part in gen_batches(len(x), batch):
        values = network.layers(x[part])
        answers[part] = values[-1]
        penalty += float(parameters.all[:squared] @ parameters.all[:squared])
        size = part.stop - part.start
        delta = values[-1] - labels[part]
        for layer in range(len(network.weights) - 1, -1, -1):
            np.dot(values[layer].T, delta, out=gradient.weights[layer])
            gradient.weights[layer] += _PENALTY * network.weights[layer]
            np.sum(delta, axis=0, out=gradient.biases[layer])
            if layer:
                delta = delta @ network.weights[layer].T
                delta *= values[layer] > 0
        steps.step(gradient.all / size)
    tiny = np.finfo(np.float64).eps
    answers = np.clip(answers, tiny, 1 - tiny)
    return float(0.5 * _PENALTY * penalty - (xlogy(labels, answers) + xlogy(1 - labels, 1 - answers)).sum()) / len(x)
