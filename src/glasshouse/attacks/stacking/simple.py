"""The simple attack, with its scores turned into probabilities, for pools where learning is not better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from glasshouse.arrays import BoolArray, FloatArray

__all__ = ["Calibrated", "clearly_finds", "hardly_better", "log_losses"]

_LOOSE = 1e6  # almost no penalty: two numbers from thousands of answers need none
_CLEARLY = 5.0  # standard errors
_SUREST = 700.0  # scores of log-odds beyond this mean the same, and a loss of 1e300 would be the whole fit


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A straight line from scores to log-odds of membership (Platt scaling): the order of scores does not change.

    Args:
        slope: at least 0.
        offset: the log-odds of a score of 0.

    Example:
        >>> scores = np.random.default_rng(0).normal(size=(1, 10_000))
        >>> members = np.random.default_rng(1).random((1, 10_000)) < 1 / (1 + np.exp(-2 * scores - 1))
        >>> line = Calibrated.to(scores, members)
        >>> round(line.slope, 1), round(line.offset, 1)
        (2.0, 1.0)
    """

    slope: float
    offset: float

    @classmethod
    def to(cls, scores: FloatArray, members: BoolArray) -> Self:
        """Fitted to the scores [T, N] of simulated targets, whose members [T, N] are known."""
        fitted = LogisticRegression(C=_LOOSE, max_iter=1000).fit(_within(scores).reshape(-1, 1), members.reshape(-1))
        return cls(slope=max(float(fitted.coef_[0, 0]), 0.0), offset=float(fitted.intercept_[0]))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Log-odds for scores, of any shape."""
        return np.asarray(self.slope * _within(scores) + self.offset)


def _within(scores: FloatArray) -> FloatArray:
    return np.clip(scores, -_SUREST, _SUREST)


def log_losses(odds: FloatArray, members: BoolArray) -> FloatArray:
    """Log loss of each simulated target, [T], from its log-odds and members, [T, N] each.

    Example:
        >>> log_losses(np.zeros((1, 2)), np.array([[True, False]])).round(3)
        array([0.693])
    """
    return np.asarray(np.logaddexp(0, np.where(members, -odds, odds)).mean(axis=1))


def clearly_finds(odds: FloatArray, members: BoolArray) -> bool:
    """Whether log-odds [T, N] of simulated targets with members [T, N] are far better than the share of members alone.

    Example:
        >>> members = np.array([[True, False], [False, True], [True, False]])
        >>> odds = np.where(members, [2.0, 2.1], [-2.0, -2.2])
        >>> clearly_finds(odds, members), clearly_finds(0 * odds, members)
        (True, False)
    """
    share = members.mean(axis=1, keepdims=True)
    blind = log_losses(np.broadcast_to(logit(np.clip(share, 1e-9, 1 - 1e-9)), members.shape), members)
    return bool(_gain(blind, log_losses(odds, members)) > _CLEARLY)


def hardly_better(learned: FloatArray, simple: FloatArray) -> bool:
    """Whether what was learned is not better than a simple attack that finds members, by log losses [T] each.

    Better means: by more than a standard error over simulated targets. A simple attack finds members if it is far
    better than a coin; if it is not, its scores are not to be trusted either.

    Example:
        >>> hardly_better(np.array([0.60, 0.62]), np.array([0.61, 0.61]))
        True
        >>> hardly_better(np.array([0.50, 0.52]), np.array([0.61, 0.61]))
        False
    """
    finds = _gain(np.full(len(simple), np.log(2)), simple) > _CLEARLY
    return bool(finds and _gain(simple, learned) <= 1)


def _gain(before: FloatArray, after: FloatArray) -> float:
    """By how many standard errors the losses [T] became smaller."""
    gain = before - after
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean() / error) if error else float(np.sign(gain.mean()) * np.inf if gain.any() else 0.0)
