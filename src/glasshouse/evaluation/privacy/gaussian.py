r"""Gaussian differential privacy: one number μ for a whole trade-off curve (Dong, Roth and Su, JRSS B 2022).

Let :math:`c` of :math:`n` guesses be right, of :math:`m` that could be, where a guess without a look at the model
has the odds :math:`o`. Write :math:`P_i` for the chance of at least :math:`i` right guesses. The inequality of
`one_run` for a whole trade-off curve and the counts above :math:`i` is

.. math:: \frac1m \sum_{j > i} j\, p_j \le \bar f\Bigl(\frac om \sum_{j \ge i} (n-j)\, p_j\Bigr),
          \qquad \bar f(x) = 1 - G_μ(x) = Φ(Φ^{-1}(x) + μ).

Both sums are sums of tails: with :math:`S_i = P_i + P_{i+1} + …` the left one is
:math:`(i P_{i+1} + S_{i+1}) / m`, and the right one is :math:`(n-i) P_i - S_{i+1}`. So

.. math:: P_i \ge \max\Bigl(P_{i+1},\;
          \frac{S_{i+1} + \frac mo \bar f^{-1}\bigl((i P_{i+1} + S_{i+1}) / m\bigr)}{n-i}\Bigr),

which grows with every tail above :math:`i`. If :math:`P_c` were as large as 1 − confidence, then all :math:`P_i`
were at least what this gives from :math:`P_c` = 1 − confidence and :math:`P_{c+1} = 0`; a :math:`P_i` above 1 is
impossible and contradicts μ (the recursion of Mahloujifar, Melis and Chaudhuri, 2025).
"""

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

    μ is contradicted by the recursion of the module, or by one of its pairs (ε, δ(ε)) through `delta_shown`: both bound
    the chance of as many right guesses. The pairs allow less in few cases, mostly of many guesses.

    Example:
        >>> round(mu_lower_bound(Guesses(95, 100, possible=1000)), 2)
        0.79
    """
    highest = epsilon_lower_bound(guesses, confidence=confidence)
    if highest <= 0:
        return 0.0
    epsilons = np.linspace(0.0, highest, _SLOPES, endpoint=False)
    shown = delta_shown(epsilons, guesses, confidence=confidence)
    low, high = 0.0, _LARGEST_MU
    while high - low > 1e-9:
        middle = (low + high) / 2
        by_a_pair = bool((gaussian_delta(epsilons, middle) < shown).any())
        contradicted = by_a_pair or _impossible(guesses, middle, tail=1 - confidence)
        low, high = (middle, high) if contradicted else (low, middle)
    return low


def _impossible(guesses: Guesses, mu: float, *, tail: float) -> bool:
    """Whether a chance of ``tail`` for as many right guesses would make another chance larger than 1."""
    made, possible = guesses.made, guesses.possible
    prior = min(max(guesses.prior, 1e-12), 1 - 1e-12)
    odds = prior / (1 - prior)
    at_least = above = tail  # P and S of the count before
    for count in range(guesses.correct - 1, -1, -1):
        right = min((count * at_least + above) / possible, 1.0)  # above 1 only by rounding
        wrong = possible / odds * float(ndtr(ndtri(right) - mu))
        needed = (above + wrong) / (made - count)
        if needed <= at_least:
            return False  # smaller counts then need no chance of their own: the sums stay, and made − count grows
        if needed > 1:
            return True
        at_least = needed
        above += needed
    return False


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
