"""Small perceptrons for two classes, trained as scikit-learn's are, several at once and without its repeated checks.

An audit trains one for every simulated target. Their steps are so small (256 records, 64 units) that scikit-learn
spends most of the time on checks, and numpy on fetching memory. The weights are the same up to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy
from sklearn.utils import check_random_state, shuffle

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.backprop import PENALTY, Adam, Parameters, forward, one_pass, relu
from glasshouse.attacks.thread_counts import thread_counts

__all__ = ["Perceptron", "train_perceptrons"]

_RATE = 1e-3
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
        return np.asarray(expit(forward(self.weights, self.biases, x, relu)[:, 0]))

    @classmethod
    def of(cls, values: Parameters, at: int) -> Perceptron:
        """A copy of one of several networks."""
        return cls([one[at].copy() for one in values.weights], [one[at, 0].copy() for one in values.biases])


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
    values = Parameters.of([features, *hidden, 1], count)
    for weight, bias in zip(values.weights, values.biases, strict=True):
        bound = np.sqrt(6.0 / sum(weight.shape[1:]))
        weight[:] = random.uniform(-bound, bound, weight.shape[1:])
        bias[:] = random.uniform(-bound, bound, bias.shape[1:])
    steps = Adam(values)
    order, lowest, waited = np.arange(records), np.full(count, np.inf), np.zeros(count, dtype=int)
    done: dict[int, Perceptron] = {}
    going, tiny = np.arange(count), np.finfo(np.float64).eps
    with thread_counts().limit(limits=1):  # the layers are too small for several threads, which would mostly wait
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
            if (waited[going] > _PATIENCE).any():
                ended = waited[going] > _PATIENCE
                done |= {int(going[at]): Perceptron.of(steps.values, int(at)) for at in np.flatnonzero(ended)}
                steps, going, x, labels = steps.some(~ended), going[~ended], x[~ended], labels[~ended]
            if not len(going):
                break
    done |= {int(one): Perceptron.of(steps.values, at) for at, one in enumerate(going)}
    return [done[number] for number in range(count)]
