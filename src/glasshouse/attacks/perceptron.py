"""Small perceptrons for two classes, trained as scikit-learn's are, several at once and without its repeated checks.

An audit trains one for every simulated target, in steps so small that checks and fetching memory would take most of the
time; so arrays are written in place. The weights are the same up to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy
from sklearn.utils import check_random_state, shuffle

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.threads import ONE_CORE

PENALTY = 1e-4  # on the squared weights
_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8  # Adam's

Floats = NDArray[Any]  # of single or double precision, all arrays alike
Activation = Callable[[Floats, Floats], None]  # changes the first array in place, writes its slope to the second


def relu(value: Floats, slope: Floats) -> None:
    """Values below 0 become 0; the slope is 0 there and 1 elsewhere."""
    np.greater(value, 0, out=slope)
    np.maximum(value, 0, out=value)


def silu(value: Floats, slope: Floats) -> None:
    """A smooth step: a value times its logistic function."""
    expit(value, out=slope)
    value *= slope
    slope += value - value * slope


@dataclass(frozen=True, eq=False)
class Parameters:
    """All numbers of several networks, [networks, parameters], and the same memory as weights and biases."""

    all: Floats
    weights: list[Floats]  # [networks, inputs, units] per layer
    biases: list[Floats]  # [networks, 1, units] per layer
    widths: Sequence[int]

    @classmethod
    def of(cls, widths: Sequence[int], count: int, dtype: type = np.float64) -> Parameters:
        """All zero."""
        shapes = list(itertools.pairwise(widths))
        cuts = np.cumsum([0, *(a * b for a, b in shapes), *(b for _, b in shapes)])
        everything = np.zeros((count, cuts[-1]), dtype=dtype)
        parts = [everything[:, first:last] for first, last in itertools.pairwise(cuts)]
        weights = [part.reshape(count, *shape) for part, shape in zip(parts, shapes, strict=False)]
        return cls(everything, weights, [part[:, None] for part in parts[len(shapes) :]], widths)

    @property
    def penalty(self) -> NDArray[np.float64]:
        """Squared weights of each network, [networks]; biases do not count."""
        some = self.all[:, : sum(weight[0].size for weight in self.weights)]
        return np.asarray(np.einsum("np,np->n", some, some))


class Adam:
    """Adam (Kingma and Ba, 2015) on all parameters of several networks, which it changes in place."""

    def __init__(self, values: Parameters) -> None:
        self.values = values
        self.gradient = Parameters.of(values.widths, len(values.all), values.all.dtype.type)
        self._mean, self._square, self._room = (np.zeros_like(values.all) for _ in range(3))
        self._count = 0

    def some(self, kept: BoolArray) -> Adam:
        """The same for some of the networks."""
        values = Parameters.of(self.values.widths, int(kept.sum()), self.values.all.dtype.type)
        values.all[:] = self.values.all[kept]
        found = Adam(values)
        found._mean[:], found._square[:], found._count = self._mean[kept], self._square[kept], self._count
        return found

    def step(self, rate: float) -> None:
        """One step down the gradient."""
        self._count += 1
        room, gradient = self._room, self.gradient.all
        self._mean *= _FIRST
        self._mean += np.multiply(gradient, 1 - _FIRST, out=room)
        self._square *= _SECOND
        np.multiply(gradient, gradient, out=room)
        room *= 1 - _SECOND
        self._square += room
        np.sqrt(self._square, out=room)
        room += _SMALL
        np.divide(self._mean, room, out=room)
        room *= rate * (1 - _SECOND**self._count) ** 0.5 / (1 - _FIRST**self._count)
        np.subtract(self.values.all, room, out=self.values.all)


def one_pass(
    steps: Adam, x: Floats, labels: Floats, *, batch: int, activation: Activation, rates: Iterable[float]
) -> tuple[Floats, NDArray[np.float64]]:
    """One step per batch of the records in their order, until the records or the rates end: one rate for each step.

    Features are [networks, N, F] and labels, 0 or 1, [networks, N, 1]; or [1, N, …]. Returned are the answers before
    each step, [networks, N, 1], and the sum of the `penalty` of all steps.
    """
    values, gradient = steps.values, steps.gradient
    count, records = len(values.all), x.shape[1]
    answers, penalty = np.empty((count, records, 1), dtype=values.all.dtype), np.zeros(count)
    rooms = [np.empty((3, count, min(batch, records), width), dtype=values.all.dtype) for width in values.widths[1:]]
    for first, rate in zip(range(0, records, batch), rates, strict=False):
        part = slice(first, min(first + batch, records))
        size = part.stop - first
        layers = [x[:, part]]
        for weight, bias, room in zip(values.weights, values.biases, rooms, strict=True):
            value = np.matmul(layers[-1], weight, out=room[0, :, :size])
            value += bias
            if len(layers) < len(rooms):
                activation(value, room[2, :, :size])
            else:
                expit(value, out=value)
            layers.append(value)
        answers[:, part] = layers[-1]
        penalty += values.penalty
        delta = np.subtract(layers[-1], labels[:, part], out=rooms[-1][1, :, :size])
        for layer in range(len(rooms) - 1, -1, -1):
            np.matmul(layers[layer].transpose(0, 2, 1), delta, out=gradient.weights[layer])
            gradient.weights[layer] += PENALTY * values.weights[layer]
            np.sum(delta, axis=1, keepdims=True, out=gradient.biases[layer])
            if layer:
                back = values.weights[layer].transpose(0, 2, 1)
                product = np.multiply if back.shape[1] == 1 else np.matmul  # of a column and a row: the same numbers
                delta = product(delta, back, out=rooms[layer - 1][1, :, :size])
                delta *= rooms[layer - 1][2, :, :size]
        np.divide(gradient.all, size, out=gradient.all)
        steps.step(rate)
    return answers, penalty


def forward(weights: Sequence[Floats], biases: Sequence[Floats], x: Floats, activation: Activation) -> Floats:
    """The last layer's values before the logistic function, [..., N, 1], for features [N, F]."""
    value = x
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        value = np.matmul(value, weight)
        value += bias
        if number + 1 < len(weights):
            activation(value, np.empty_like(value))
    return value


_RATE = 1e-3
_LEAST = 1e-4  # a loss that falls by less has not fallen
_PATIENCE = 10  # passes without a fall, after which the training ends


@dataclass(frozen=True, eq=False)
class Perceptron:
    """Hidden layers of ReLUs and one logistic unit: a matrix [inputs, units] and a vector [units] per layer."""

    weights: Sequence[FloatArray]
    biases: Sequence[FloatArray]

    def probabilities(self, x: FloatArray) -> FloatArray:
        """Of the class "true", [N], from features [N, F]."""
        return np.asarray(expit(forward(self.weights, self.biases, x, relu)[:, 0]))

    @classmethod
    def of(cls, values: Parameters, at: int) -> Perceptron:
        """A copy of one of several networks."""
        return cls([one[at].copy() for one in values.weights], [one[at, 0].copy() for one in values.biases])


def train_perceptrons(
    examples: Sequence[tuple[FloatArray, BoolArray]],  # for each its features [N, F], scaled, and labels [N]
    *,
    hidden: Sequence[int],  # widths of the hidden layers
    epochs: int,  # passes over the records, at most
    batch: int = 256,  # records per step
    seed: int = 0,  # of the first weights and of the order of the records, below 2^32
) -> list[Perceptron]:
    """Train each by Adam, as ``sklearn.neural_network.MLPClassifier`` does, with the same first weights and order."""
    x = np.stack([features for features, _ in examples])
    labels = np.stack([label for _, label in examples])[:, :, None].astype(np.float64)
    count, records, features = x.shape
    random = check_random_state(seed)
    values = Parameters.of([features, *hidden, 1], count)
    for weight, bias in zip(values.weights, values.biases, strict=True):
        bound = np.sqrt(6.0 / sum(weight.shape[1:]))
        weight[:] = random.uniform(-bound, bound, weight.shape[1:])
        bias[:] = random.uniform(-bound, bound, bias.shape[1:])
    steps = Adam(values)
    order, lowest, waited = np.arange(records), np.full(count, np.inf), np.zeros(count, dtype=int)
    done: dict[int, Perceptron] = {}
    going, tiny = np.arange(count), np.finfo(np.float64).eps
    with ONE_CORE:  # the layers are too small for several threads, which would mostly wait
        for _ in range(epochs):
            order = shuffle(order, random_state=random)
            shown, wanted = x.take(order, axis=1), labels.take(order, axis=1)
            answers, penalty = one_pass(
                steps, shown, wanted, batch=batch, activation=relu, rates=itertools.repeat(_RATE)
            )
            answers = np.clip(answers, tiny, 1 - tiny)
            entropy = (xlogy(wanted, answers) + xlogy(1 - wanted, 1 - answers)).sum(axis=(1, 2))
            loss = (0.5 * PENALTY * penalty - entropy) / records
            waited[going] = np.where(loss > lowest[going] - _LEAST, waited[going] + 1, 0)
            lowest[going] = np.minimum(lowest[going], loss)
            if (ended := waited[going] > _PATIENCE).any():
                done |= {int(going[at]): Perceptron.of(steps.values, int(at)) for at in np.flatnonzero(ended)}
                steps, going, x, labels = steps.some(~ended), going[~ended], x[~ended], labels[~ended]
            if not len(going):
                break
    done |= {int(one): Perceptron.of(steps.values, at) for at, one in enumerate(going)}
    return [done[number] for number in range(count)]
