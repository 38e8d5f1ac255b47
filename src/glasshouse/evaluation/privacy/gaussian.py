"""Gaussian differential privacy: one number μ for a whole trade-off curve (Dong, Roth and Su, JRSS B 2022)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import beta

from glasshouse.arrays import FloatArray
from glasshouse.evaluation.privacy.guesses import Guesses
from glasshouse.evaluation.privacy.one_run import delta_shown, epsilon_lower_bound

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_trade_off", "mu_if_independent", "mu_lower_bound"]

_LARGEST_MU = 30.0
_SLOPES = 512


def gaussian_delta(epsilon: FloatArray | float, mu: float) -> FloatArray:
    """δ(ε) of μ-Gaussian privacy, Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), exact.

    Example:
        >>> float(gaussian_delta(1.0, 1.0).round(4))
        0.1269
    """
    if mu <= 0:
        return np.zeros_like(np.asarray(epsilon, dtype=np.float64))
    ratio = np.asarray(epsilon, dtype=np.float64) / mu
    return np.asarray(ndtr(mu / 2 - ratio) - np.exp(epsilon + log_ndtr(-mu / 2 - ratio)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε at a δ of μ-Gaussian privacy; infinite at δ = 0, since no Gaussian noise is private without δ.

    Example:
        >>> round(gaussian_epsilon(1.0, 1e-5), 2), gaussian_epsilon(0.0, 1e-5)
        (4.38, 0.0)
    """
    if mu <= 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0:
        return float("inf")
    highest = mu * mu / 2 + 40 * mu  # there δ is below 1e-300
    return float(brentq(lambda epsilon: float(gaussian_delta(epsilon, mu)) - delta, 0.0, highest))


def gaussian_trade_off(fpr: FloatArray, mu: float) -> FloatArray:
    """G_μ: the smallest false-negative rate at false-positive rates [P] under μ-Gaussian privacy.

    Example:
        >>> gaussian_trade_off(np.array([0.0, 0.05, 1.0]), 1.0).round(3)
        array([1.  , 0.74, 0.  ])
    """
    return np.asarray(ndtr(ndtri(1 - fpr) - mu))


def mu_lower_bound(guesses: Guesses, *, confidence: float = 0.95) -> float:
    """The largest μ that the guesses contradict, whatever the records have to do with each other.

    μ-Gaussian privacy is (ε, δ(ε))-privacy for every ε, so it is contradicted where the guesses contradict one of
    these pairs.

    Example:
        >>> round(mu_lower_bound(Guesses(95, 100, possible=1000)), 2)
        0.75
    """
    highest = epsilon_lower_bound(guesses, confidence=confidence)
    if highest <= 0:
        return 0.0
    epsilons = np.linspace(0.0, highest, _SLOPES, endpoint=False)
    shown = delta_shown(epsilons, guesses, confidence=confidence)
    low, high = 0.0, _LARGEST_MU
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if (gaussian_delta(epsilons, middle) < shown).any() else (low, middle)
    return low


def mu_if_independent(guesses: Guesses, *, confidence: float = 0.95) -> float:
    """The largest μ that guesses about every record contradict, *if they are right or wrong independently*.

    Under μ-Gaussian privacy a guess about a fair coin is right with probability at most Φ(μ/2), so the number of right
    ones is at most binomial if the guesses are independent: as for separate noise on records that do not influence
    each other. Without independence it can be far too high: see `mu_lower_bound`. One right guess is not counted:
    where exactly half of the records are members, right guesses by rank come in pairs.

    Example:
        >>> round(mu_if_independent(Guesses(691, 1000, possible=1000)), 2)
        0.85
    """
    correct = guesses.correct - 1
    if correct <= 0:
        return 0.0
    lowest = float(beta.ppf(1 - confidence, correct, guesses.made - correct + 1))  # Clopper and Pearson, one-sided
    return max(0.0, 2 * float(ndtri(lowest)))
