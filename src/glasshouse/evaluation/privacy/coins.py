r"""Bounds with coins of our own, under Gaussian privacy, and how many canaries they need.

Let canary :math:`i` be inside and :math:`j` outside, or the other way round, with equal chances. If each is released
under its own independent noise with μ-Gaussian privacy, the two cases are :math:`\sqrt2 μ`-Gaussian private together
(Dong, Roth and Su, JRSS B 2022, Corollary 2). "The one with the higher score is inside" is then right with probability
at most :math:`Φ(\sqrt2 μ / 2)`. Averaged over all pairs and coins, this is the AUC. So an AUC that is above
:math:`a` with confidence shows :math:`μ \ge \sqrt2\, Φ^{-1}(a)`. A count of right guesses by one threshold uses less:
for a shift of a normal score it has 2/π of the information, and ranks have 3/π.

The variance of the AUC is about :math:`c\,(1/n_1 + 1/n_0)`, with :math:`n_1` canaries inside and :math:`n_0` left out.
Only those inside train a model and cost accuracy. Canaries that are left out cost a query each: with four times as many
of them the error falls to 0.79 of that of fair coins, and with very many to 0.71.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.evaluation.intervals import delong
from glasshouse.evaluation.privacy.bounds import gaussian_epsilon

_SMALLEST, _LARGEST = 20, 10_000_000  # canaries


def mu_from_area(scores: FloatArray, members: BoolArray, *, confidence: float = 0.95) -> float:
    """The largest μ that the order of scores [n] contradicts, *if canaries do not influence each other*.

    Members must have been drawn by independent coins. The interval of the AUC is DeLong's, one-sided, which is right
    for many canaries.

    Example:
        >>> random = np.random.default_rng(0)
        >>> members = random.random(2000) < 0.5
        >>> scores = members + random.normal(size=2000)  # μ = 1
        >>> 0.85 < mu_from_area(scores, members) < 1
        True
    """
    low = delong(scores, members, confidence=2 * confidence - 1).low
    return max(0.0, math.sqrt(2) * float(ndtri(low))) if low < 1 else math.inf


def area_spread(mu: float, share: float = 0.5) -> float:
    """The standard deviation of the AUC times √n, for n canaries whose scores are shifted by μ, a share of them inside.

    Example:
        >>> round(area_spread(0.0), 3)  # √(1/3)
        0.577
    """
    places, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    area = float(ndtr(mu / math.sqrt(2)))
    placement = float((weights * ndtr(places + mu) ** 2).sum()) - area**2  # of one member among the others' scores
    return math.sqrt(max(placement, 0.0) / (share * (1 - share)))  # two samples with equal placements


def mu_of(epsilon: float, delta: float) -> float:
    """The μ whose Gaussian privacy has this ε at this δ.

    Example:
        >>> round(gaussian_epsilon(mu_of(4.0, 1e-5), 1e-5), 6)
        4.0
    """
    if not (0 < epsilon < 50 and 0 < delta < 1):
        raise InputError(f"epsilon {epsilon}, delta {delta}: use an ε between 0 and 50, and a δ between 0 and 1.")
    return float(brentq(lambda mu: gaussian_epsilon(mu, delta) - epsilon, 1e-6, 20.0))


def canaries_for(
    epsilon: float,
    *,
    shown: float,
    share: float = 0.5,
    delta: float = 1e-5,
    power: float = 0.8,
    confidence: float = 0.95,
) -> int:
    """How many canaries show an ε of ``shown`` where the true one is ``epsilon``, with this power.

    It is for canaries that find all that Gaussian privacy allows; weaker ones need more.

    Args:
        epsilon: the true ε that a leak would have, at δ.
        shown: the bound to show, below it.
        share: of the canaries that are inside, the chance of each one's coin.
        delta: δ of both.
        power: the chance that the bound is reached.
        confidence: of the bound.

    Example:
        >>> canaries_for(4.0, shown=2.4) < canaries_for(1.0, shown=0.6)
        True
    """
    if not 0 < shown < epsilon:
        raise InputError(f"shown {shown}: give an ε between 0 and {epsilon}, the one that is expected.")
    true, least = mu_of(epsilon, delta), mu_of(shown, delta)
    gap = float(ndtr(true / math.sqrt(2)) - ndtr(least / math.sqrt(2)))
    spreads = area_spread(least, share), area_spread(true, share)
    reach = -float(ndtri(1 - confidence)) * spreads[0] - float(ndtri(1 - power)) * spreads[1]
    count = math.ceil((reach / gap) ** 2)
    if count > _LARGEST:
        raise InputError(f"shown {shown}: needs {count} canaries; ask for less than that of {epsilon}.")
    return max(_SMALLEST, 2 * math.ceil(count / 2))
