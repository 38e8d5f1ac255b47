"""A learner of a membership posterior: a few small networks, smooth where trees have steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.utils import gen_batches

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.backprop import Adam, Parameters, forward, one_pass, silu
from glasshouse.attacks.stacking.learners import Predictor
from glasshouse.attacks.stacking.scale import Scale
from glasshouse.attacks.thread_counts import thread_counts
from glasshouse.randomness import generator

__all__ = ["Network"]

_BLOCK = 4_096  # rows that are judged at once
_WARM = 0.1  # share of the steps in which the learning rate rises
_SURE = 0.1  # of the usual scale for the last layer: the first answers are near 1/2
_RATE = 1.7e-10  # seconds for one step, row and weight on one core


@dataclass(frozen=True, kw_only=True)
class Network:
    """Mean log-odds of perceptrons with smooth units, trained by Adam with a rate that rises and falls.

    They take a limited number of steps: if there are many rows, they see each of them a few times only. That is enough,
    and with more steps they would learn rows by heart where members can hardly be told.

    Args:
        hidden: widths of the hidden layers.
        nets: how many networks are averaged; they differ in their first weights.
        epochs: passes over the rows, at most.
        steps: steps, at most.
        batch: rows of a step.
        rate: the highest learning rate.
        tail: share of rows at each end whose values are clipped.
        examples: how many rows it learns from, at most; drawn at random.

    Example:
        >>> rows = np.linspace(-3, 3, 2_000)[:, None]
        >>> odds = Network(epochs=100).fit(rows, np.abs(rows[:, 0]) > 1, seed=0).log_odds(np.array([[0.0], [2.0]]))
        >>> bool(odds[0] < -2), bool(odds[1] > 2)
        (True, True)
    """

    dtype: ClassVar[type | None] = None

    hidden: tuple[int, ...] = (96, 48)
    nets: int = 2
    epochs: int = 10
    steps: int = 400
    batch: int = 512
    rate: float = 0.008
    tail: float = 0.005
    examples: int = 200_000

    def fit(self, rows: FloatArray, members: BoolArray, *, seed: int) -> Predictor:
        """Learn from rows [R, F] and members [R]."""
        random, scale = generator(seed, "network"), Scale.of(rows, tail=self.tail)
        x, labels = scale.apply(rows).astype(np.float32), members.astype(np.float32)
        values = Parameters.of([x.shape[1], *self.hidden, 1], self.nets, np.float32)
        for weight in values.weights:
            weight[:] = random.standard_normal(weight.shape) * np.sqrt(2 / weight.shape[1])
        values.weights[-1][:] *= _SURE
        steps, rates = Adam(values), self._rates(len(x))
        each = -(-len(x) // self.batch)  # steps of a pass
        for first in range(0, len(rates), each):
            order = random.permutation(len(x))
            shown, wanted = x[None, order], labels[None, order, None]
            one_pass(steps, shown, wanted, batch=self.batch, activation=silu, rates=rates[first : first + each])
        return _Networks(scale, values)

    def seconds(self, rows: int, features: int) -> float:
        """How long a fit should take."""
        shapes = zip([features, *self.hidden], [*self.hidden, 1], strict=True)
        weights = self.nets * sum(inputs * units for inputs, units in shapes)
        return _RATE * weights * min(self.epochs * rows, self.steps * self.batch)

    def _rates(self, rows: int) -> list[float]:
        """The learning rate of each step: it rises to its highest, and falls to 0 as a cosine does."""
        count = min(self.steps, self.epochs * -(-rows // self.batch))
        done = np.arange(1, count + 1) / count
        fallen = 0.5 * (1 + np.cos(np.pi * (done - _WARM) / (1 - _WARM)))
        return list(map(float, self.rate * np.where(done < _WARM, done / _WARM, fallen)))


@dataclass(frozen=True, eq=False)
class _Networks:
    scale: Scale
    values: Parameters

    def log_odds(self, rows: FloatArray) -> FloatArray:
        found = np.empty(len(rows))
        # one thread: several may add up in another order, and the last bits would depend on the number of cores
        with thread_counts().limit(limits=1, user_api="blas"):
            for block in gen_batches(len(rows), _BLOCK):
                x = self.scale.apply(rows[block]).astype(np.float32)
                odds = forward(self.values.weights, self.values.biases, x, silu)  # [networks, rows, 1]
                found[block] = odds[:, :, 0].mean(axis=0, dtype=np.float64)
        return found
