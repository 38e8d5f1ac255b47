"""Learners of a membership posterior from features: boosted trees, small networks, and a linear one for few records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import gen_batches

from glasshouse.attacks.perceptron import Adam, Parameters, forward, one_pass, silu
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.randomness import generator, seed_for, some_of
from glasshouse.core.threads import ONE_CORE, thread_counts


@dataclass(frozen=True, eq=False)
class Scale:
    """Clip features [R, F] at quantiles of the rows that were learned from, then make their mean 0 and their width 1.

    So nothing is extrapolated: a value beyond these quantiles counts as the quantile.
    """

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, *, tail: float) -> Self:
        """From rows [R, F] to learn from; ``tail`` is the share of them that is clipped at each end."""
        # column by column: copies of all rows are most of the memory of a fit
        low, high = np.transpose([np.quantile(column, [tail, 1 - tail]) for column in rows.T])
        clipped = np.clip(rows, low, high)
        return cls(low, high, clipped.mean(axis=0), clipped.std(axis=0) + 1e-9)

    def apply(self, rows: FloatArray) -> FloatArray:
        """Scaled rows, [R, F]."""
        scaled = np.clip(rows, self.low, self.high)
        scaled -= self.centre
        scaled /= self.width
        return scaled


_BLOCK = 4_096  # rows that are handled at once: they stay in the cache, and copies of them are small
_SUREST = 16.0  # log-odds of one in ten million; no leaf holds that many rows
_STEPS = 50  # Newton needs about six
_CLOSE = 1e-9  # a step that lowers the mean log loss by less is the last one
_LEAST = 1e-8
_BOOSTED_RATE = 1e-8  # seconds for one tree, row and feature on one core
_LINEAR_RATE = 1e-9  # seconds for one row and pair of slopes, over all steps


@dataclass(frozen=True)
class Predictor:
    """What a learner returns."""

    judged: Callable[[FloatArray], FloatArray]  # log-odds [R] of rows [R, F]; it may travel to another process

    def log_odds(self, rows: FloatArray) -> FloatArray:
        """Log-odds of membership, [R], from rows [R, F], some of them at a time: trees make a copy of them."""
        blocks = [self.judged(rows[block]) for block in gen_batches(len(rows), _BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty(0)


class Learner(Protocol):
    """A way to learn log-odds of membership; a frozen dataclass of its parameters."""

    @property
    def examples(self) -> int:
        """How many rows it needs at most; more are a waste of time. The caller draws them at random."""

    @property
    def dtype(self) -> type | None:
        """The type of rows that it does not have to copy; None for any."""

    def fit(self, rows: FloatArray, members: BoolArray, *, seed: int) -> Predictor:
        """Learn from rows [R, F] and members [R], on one core."""

    def seconds(self, rows: int, features: int) -> float:
        """How long that should take; only the order of magnitude is known."""


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """Histogram gradient boosting: mean log-odds of several fits, a random share of the features for each split."""

    dtype: ClassVar[type | None] = np.float64

    rounds: int = 75  # number of trees in a fit
    rate: float = 0.1  # learning rate
    leaves: int = 31  # of a tree, at most
    smallest_leaf: int = 40  # rows of a leaf, at least
    penalty: float = 1.0  # L2 penalty on the leaves' values
    share: float = 0.5  # of the features that is tried for each split
    bins: int = 63  # how many values of a feature are told apart, at most 255
    fits: int = 1  # how many fits are averaged
    # a regression that is fitted first; its log-odds are one more feature. Trees split along single features, so that
    # they need many of them for a weighted sum
    guide: Linear | None = None
    examples: int = 200_000  # how many rows it learns from, at most; drawn at random

    def fit(self, rows: FloatArray, members: BoolArray, *, seed: int) -> Predictor:
        """Learn from rows [R, F] and members [R]."""
        guide = None
        if self.guide is not None:
            some = some_of(len(rows), self.guide.examples, seed, "guide")
            guide = self.guide.fit(rows[some], members[some], seed=seed)
            rows = _guided(rows, guide)
        fits = [self._fit(rows, members, seed_for(seed, "boosted", number)) for number in range(self.fits)]
        return Predictor(functools.partial(_of_trees, fits, guide))

    def seconds(self, rows: int, features: int) -> float:
        """How long a fit should take."""
        return _BOOSTED_RATE * self.fits * self.rounds * rows * features

    def _fit(self, rows: FloatArray, members: BoolArray, seed: int) -> Any:
        made = HistGradientBoostingClassifier(
            max_iter=self.rounds,
            learning_rate=self.rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.smallest_leaf,
            l2_regularization=self.penalty,
            max_features=self.share,
            max_bins=self.bins,
            early_stopping=False,
            random_state=seed % 2**32,
        )
        # one thread: several add up in an order that changes from run to run, and so do the last bits
        with thread_counts().limit(limits=1, user_api="openmp"):
            return made.fit(rows, members)


def _guided(rows: FloatArray, guide: Predictor) -> FloatArray:
    """Rows [R, F + 1]: the features, and what the guide says of them."""
    return np.column_stack([rows, guide.log_odds(rows)])


def _of_trees(fits: Sequence[Any], guide: Predictor | None, rows: FloatArray) -> FloatArray:
    with thread_counts().limit(limits=1, user_api="openmp"):
        some = rows if guide is None else _guided(rows, guide)
        odds = [one.decision_function(some) for one in fits]
    return np.asarray(np.mean(np.clip(odds, -_SUREST, _SUREST), axis=0))


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Logistic regression on features and their squares, without outliers and on one scale."""

    dtype: ClassVar[type | None] = None

    strength: float = 0.1  # inverse of the penalty
    tail: float = 0.0002  # share of rows at each end whose values are clipped
    examples: int = 50_000  # how many rows it learns from, at most; drawn at random

    def fit(self, rows: FloatArray, members: BoolArray, *, seed: int) -> Predictor:
        """Learn from rows [R, F] and members [R]; nothing here is random."""
        scale = Scale.of(rows, tail=self.tail)
        slope = _regression(scale.apply(rows), members, strength=self.strength)
        return Predictor(functools.partial(_of_line, scale, slope[:-1], float(slope[-1])))

    def seconds(self, rows: int, features: int) -> float:
        """How long a fit should take."""
        return _LINEAR_RATE * rows * (2 * features + 1) ** 2


def _regression(scaled: FloatArray, members: BoolArray, *, strength: float) -> FloatArray:
    """Slopes of features [R, F], of their squares, and a constant, [2 F + 1], by Newton's method."""
    penalty = np.append(np.full(2 * scaled.shape[1], 1 / strength), _LEAST)  # none on the constant
    blocks = list(gen_batches(len(scaled), _BLOCK))

    def columns(block: slice) -> FloatArray:
        return np.column_stack([_squared(scaled[block]), np.ones(len(members[block]))])

    def loss(slope: FloatArray) -> float:
        total = 0.0
        for block in blocks:
            odds = columns(block) @ slope
            total += np.logaddexp(0, np.where(members[block], -odds, odds)).sum()
        return float(total + (penalty * slope**2).sum() / 2)

    slope, before = np.zeros(len(penalty)), len(scaled) * np.log(2)
    for _ in range(_STEPS):
        downhill, bend = np.zeros(len(penalty)), np.zeros((len(penalty), len(penalty)))
        for block in blocks:
            rows = columns(block)
            chance = expit(rows @ slope)
            downhill += rows.T @ (members[block] - chance)
            bend += (rows * (chance * (1 - chance))[:, None]).T @ rows
        step = cho_solve(cho_factor(bend + np.diag(penalty)), downhill - penalty * slope)
        while (after := loss(slope + step)) > before and np.abs(step).max() > _LEAST:
            step = step / 2
        if before - after < _CLOSE * len(scaled):
            break
        slope, before = slope + step, after
    return slope


def _of_line(scale: Scale, slope: FloatArray, constant: float, rows: FloatArray) -> FloatArray:
    return np.asarray(_squared(scale.apply(rows)) @ slope + constant)


def _squared(scaled: FloatArray) -> FloatArray:
    return np.concatenate([scaled, scaled**2], axis=1)


_WARM = 0.1  # share of the steps in which the learning rate rises
_SURE = 0.1  # of the usual scale for the last layer: the first answers are near 1/2
_RATE = 1.7e-10  # seconds for one step, row and weight on one core


@dataclass(frozen=True, kw_only=True)
class Network:
    """Mean log-odds of perceptrons with smooth units, trained by Adam with a rate that rises and falls.

    More steps would learn rows by heart where members can hardly be told.
    """

    dtype: ClassVar[type | None] = None

    hidden: tuple[int, ...] = (96, 48)  # widths of the hidden layers
    nets: int = 2  # how many networks are averaged; they differ in their first weights
    epochs: int = 10  # passes over the rows, at most
    steps: int = 400  # at most
    batch: int = 512  # rows of a step
    rate: float = 0.008  # the highest learning rate
    tail: float = 0.005  # share of rows at each end whose values are clipped
    examples: int = 200_000  # how many rows it learns from, at most; drawn at random

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
        with ONE_CORE:
            for first in range(0, len(rates), each):
                order = random.permutation(len(x))
                shown, wanted = x[None, order], labels[None, order, None]
                one_pass(steps, shown, wanted, batch=self.batch, activation=silu, rates=rates[first : first + each])
        return Predictor(functools.partial(_of_networks, scale, values))

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


def _of_networks(scale: Scale, values: Parameters, rows: FloatArray) -> FloatArray:
    x = scale.apply(rows).astype(np.float32)
    with ONE_CORE:
        odds = forward(values.weights, values.biases, x, silu)  # [networks, rows, 1]
    return np.asarray(odds[:, :, 0].mean(axis=0, dtype=np.float64))
