"""The simple attack, with its scores turned into probabilities, for pools where learning is not better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.randomness import some_of

_MOST = 100_000  # scores: two numbers are known well from these, and the regression makes eight copies
_LOOSE = 1e6  # almost no penalty: two numbers from thousands of answers need none
_CLEARLY = 5.0  # standard errors
_RATES = np.array([0.001, 0.003, 0.01, 0.03])
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
        """Fitted to the scores [T, N] of simulated targets, whose members [T, N] are known; to a part of very many."""
        some = some_of(scores.size, _MOST, 0, "line")
        given = _within(scores.reshape(-1)[some])
        fitted = LogisticRegression(C=_LOOSE, max_iter=1000).fit(given[:, None], members.reshape(-1)[some])
        return cls(slope=max(float(fitted.coef_[0, 0]), 0.0), offset=float(fitted.intercept_[0]))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Log-odds for scores, of any shape."""
        return np.asarray(self.slope * _within(scores) + self.offset)


def _within(scores: FloatArray) -> FloatArray:
    return np.clip(scores, -_SUREST, _SUREST)


def log_losses(odds: Iterable[FloatArray], members: BoolArray) -> FloatArray:
    """Log loss of each simulated target, [T], from its log-odds and members, [T, N] each, one target at a time.

    Example:
        >>> log_losses(np.zeros((1, 2)), np.array([[True, False]])).round(3)
        array([0.693])
    """
    return np.array([_log_loss(one, who) for one, who in zip(odds, members, strict=True)])


def _log_loss(odds: FloatArray, members: BoolArray) -> float:
    return float(np.logaddexp(0, np.where(members, -odds, odds)).mean())


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


def part_of_simple(learned: FloatArray, simple: FloatArray, members: BoolArray) -> float:
    """Which part a simple attack should have in the log-odds: none, half, or all.

    Learned log-odds must have a smaller log loss than the simple attack, by more than a standard error over simulated
    targets; so must the mean of both. Log loss is about all records. Audits are about the few that are surely members:
    so, of those that are better, the one that finds most members at low false-positive rates is taken, and none if the
    simple attack finds more there by a standard error.

    A simple attack that is not far better than a coin has no part: its scores are not to be trusted either.

    Args:
        learned: [T, N] log-odds of held-out simulated targets.
        simple: [T, N] the same by the simple attack.
        members: [T, N] their members.

    Example:
        >>> random = np.random.default_rng(0)
        >>> margins = random.normal(size=(4, 500))
        >>> members = random.random((4, 500)) < 1 / (1 + np.exp(-2 * margins))
        >>> part_of_simple(margins * 0, 2 * margins, members)
        1.0
        >>> part_of_simple(2 * margins, margins + random.normal(size=(4, 500)), members)
        0.0
    """
    plain = log_losses(simple, members)
    if _gain(np.full(len(plain), np.log(2)), plain) <= _CLEARLY:
        return 0.0
    usual, found = power_at_low_rates(simple, members), {}
    for part in (0.0, 0.5):
        if _gain(plain, log_losses(_mixed(learned, simple, part), members)) > 1:
            found[part] = power_at_low_rates(_mixed(learned, simple, part), members)
    if not found:
        return 1.0
    best = max(found, key=lambda part: float(found[part].mean()))
    return 1.0 if _gain(found[best], usual) < -1 else best


def _mixed(learned: FloatArray, simple: FloatArray, part: float) -> Iterator[FloatArray]:
    """Log-odds [N] of one simulated target after another: all of them together are as large as the evidence."""
    return ((1 - part) * one + part * other for one, other in zip(learned, simple, strict=True))


def power_at_low_rates(odds: Iterable[FloatArray], members: BoolArray) -> FloatArray:
    """Mean share of members that are found at false-positive rates of 0.1, 0.3, 1 and 3 %, [T], by log-odds [T, N].

    Example:
        >>> power_at_low_rates(np.array([[3.0, 2.0, 1.0, 0.0]]), np.array([[True, False, True, False]]))
        array([0.5])
    """
    return np.array([_power(one, who) for one, who in zip(odds, members, strict=True)])


def _power(odds: FloatArray, members: BoolArray) -> float:
    others, own = np.sort(odds[~members]), np.sort(odds[members])
    if not len(others) or not len(own):
        return 0.0
    allowed = (len(others) * _RATES).astype(np.intp)  # how many others may lie above the threshold
    above = len(own) - np.searchsorted(own, others[len(others) - 1 - allowed], side="right")
    return float(np.mean(above / len(own)))


def _gain(before: FloatArray, after: FloatArray) -> float:
    """By how many standard errors the figures [T] became smaller."""
    gain = before - after
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean() / error) if error else float(np.sign(gain.mean()) * np.inf if gain.any() else 0.0)
