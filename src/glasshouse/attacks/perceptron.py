"""Small perceptrons for two classes, trained as scikit-learn's are, several at once and without its repeated checks.

An audit trains one for every simulated target. Their steps are so small (256 records, 64 units) that scikit-learn
spends most of the time on checks, and numpy on fetching memory. The weights are the same up to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy
from sklearn.utils import check_random_state, shuffle

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.thread_counts import thread_counts

__all__ = ["Perceptron", "train_perceptrons"]

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
        value = x
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            value = value @ weight
            value += bias
            if number + 1 < len(self.weights):
                np.maximum(value, 0, out=value)
        return np.asarray(expit(value[:, 0]))


def train_perceptrons(
    examples: Sequence[tuple[FloatArray, BoolArray]],
    *,
    hidden: Sequence[int],
    epochs: int,
    batch: int = 256,
    seed: int = 0,
) -> list[Perceptron]:
    """Train each by Adam, as ``sklearn.neural_network.MLPClassifier`` does with its default settings.

    All begin with the same weights and see their records in the same order, so they can take their steps together.

    Args:
        examples: for each network its features [N, F], scaled, and its labels [N]; all of one shape.
        hidden: widths of the hidden layers.
        epochs: passes over the records, at most.
        batch: records per step.
        seed: of the first weights and of the order of the records, below 2^32.

    Example:
        >>> x = np.linspace(-2, 2, 64)[:, None]
        >>> one, other = train_perceptrons([(x, x[:, 0] > 0), (x, x[:, 0] < 0)], hidden=[8], epochs=200, batch=8)
        >>> bool(one.probabilities(x)[-1] > 0.9), bool(other.probabilities(x)[-1] < 0.1)
        (True, True)
    """
    x = np.stack([features for features, _ in examples])
    labels = np.stack([label for _, label in examples])[:, :, None].astype(np.float64)
    count, records, features = x.shape
    random = check_random_state(seed)
    values = _Parameters.of([features, *hidden, 1], count)
    for weight, bias in zip(values.weights, values.biases, strict=True):
        bound = np.sqrt(6.0 / sum(weight.shape[1:]))
        weight[:] = random.uniform(-bound, bound, weight.shape[1:])
        bias[:] = random.uniform(-bound, bound, bias.shape[1:])
    steps = _Adam(values)
    order, lowest, waited = np.arange(records), np.full(count, np.inf), np.zeros(count, dtype=int)
    done: dict[int, Perceptron] = {}
    going = np.arange(count)
    with thread_counts().limit(limits=1):  # the layers are too small for several threads, which would mostly wait
        for _ in range(epochs):
            order = shuffle(order, random_state=random)
            loss = _one_pass(steps, x.take(order, axis=1), labels.take(order, axis=1), batch)
            waited[going] = np.where(loss > lowest[going] - _LEAST, waited[going] + 1, 0)
            lowest[going] = np.minimum(lowest[going], loss)
            if (waited[going] > _PATIENCE).any():
                ended = waited[going] > _PATIENCE
                done |= {int(going[at]): steps.values.network(int(at)) for at in np.flatnonzero(ended)}
                steps, going, x, labels = steps.some(~ended), going[~ended], x[~ended], labels[~ended]
            if not len(going):
                break
    done |= {int(one): steps.values.network(at) for at, one in enumerate(going)}
    return [done[number] for number in range(count)]


@dataclass(frozen=True, eq=False)
class _Parameters:
    """All numbers of several networks, [networks, parameters], and the same memory as weights and biases."""

    all: FloatArray
    weights: list[FloatArray]  # [networks, inputs, units] per layer
    biases: list[FloatArray]  # [networks, 1, units] per layer
    widths: Sequence[int]

    @classmethod
    def of(cls, widths: Sequence[int], count: int) -> _Parameters:
        shapes = list(itertools.pairwise(widths))
        cuts = np.cumsum([0, *(a * b for a, b in shapes), *(b for _, b in shapes)])
        everything = np.zeros((count, cuts[-1]))
        parts = [everything[:, first:last] for first, last in itertools.pairwise(cuts)]
        weights = [part.reshape(count, *shape) for part, shape in zip(parts, shapes, strict=False)]
        return cls(everything, weights, [part[:, None] for part in parts[len(shapes) :]], widths)

    def network(self, at: int) -> Perceptron:
        """A copy of one network."""
        return Perceptron([one[at].copy() for one in self.weights], [one[at, 0].copy() for one in self.biases])


class _Adam:
    """Adam (Kingma and Ba, 2015) on all parameters of several networks, which it changes in place."""

    def __init__(self, values: _Parameters) -> None:
        self.values = values
        self.gradient = _Parameters.of(values.widths, len(values.all))
        self._mean, self._square, self._room = (np.zeros_like(values.all) for _ in range(3))
        self._count = 0

    def some(self, kept: BoolArray) -> _Adam:
        """The same for some of the networks."""
        values = _Parameters.of(self.values.widths, int(kept.sum()))
        values.all[:] = self.values.all[kept]
        found = _Adam(values)
        found._mean[:], found._square[:], found._count = self._mean[kept], self._square[kept], self._count
        return found

    def step(self) -> None:
        """One step down the gradient; in place, since fresh memory would cost more than the sums."""
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
        room *= _RATE * np.sqrt(1 - _SECOND**self._count) / (1 - _FIRST**self._count)
        np.subtract(self.values.all, room, out=self.values.all)


def _one_pass(steps: _Adam, x: FloatArray, labels: FloatArray, batch: int) -> NDArray[np.float64]:
    """One step per batch of the records [networks, N, F] in their order; returns the mean losses, [networks]."""
    values, gradient = steps.values, steps.gradient
    count, records, _ = x.shape
    answers, penalty = np.empty_like(labels), np.zeros(count)
    slopes = sum(weight[0].size for weight in values.weights)
    rooms = [np.empty((2, count, min(batch, records), width)) for width in values.widths[1:]]
    for first in range(0, records, batch):
        part = slice(first, min(first + batch, records))
        size = part.stop - first
        layers = [x[:, part]]
        for weight, bias, room in zip(values.weights, values.biases, rooms, strict=True):
            value = np.matmul(layers[-1], weight, out=room[0, :, :size])
            value += bias
            layers.append(np.maximum(value, 0, out=value) if len(layers) < len(rooms) else expit(value, out=value))
        answers[:, part] = layers[-1]
        penalty += np.einsum("np,np->n", values.all[:, :slopes], values.all[:, :slopes])
        delta = np.subtract(layers[-1], labels[:, part], out=rooms[-1][1, :, :size])
        for layer in range(len(rooms) - 1, -1, -1):
            np.matmul(layers[layer].transpose(0, 2, 1), delta, out=gradient.weights[layer])
            gradient.weights[layer] += _PENALTY * values.weights[layer]
            np.sum(delta, axis=1, keepdims=True, out=gradient.biases[layer])
            if layer:
                room = rooms[layer - 1][1, :, :size]
                back = values.weights[layer].transpose(0, 2, 1)
                product = np.multiply if back.shape[1] == 1 else np.matmul  # of a column and a row: the same numbers
                delta = product(delta, back, out=room)
                delta *= np.greater(layers[layer], 0, out=rooms[layer - 1][0, :, :size])
        np.divide(gradient.all, size, out=gradient.all)
        steps.step()
    tiny = np.finfo(np.float64).eps
    answers = np.clip(answers, tiny, 1 - tiny)
    entropy = (xlogy(labels, answers) + xlogy(1 - labels, 1 - answers)).sum(axis=(1, 2))
    return np.asarray((0.5 * _PENALTY * penalty - entropy) / records)
