"""Confidence intervals of rates and of the AUC."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import beta, norm, rankdata

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.errors import InputError
from glasshouse.evaluation.roc import checked

__all__ = ["Interval", "clopper_pearson", "delong", "placements"]


class Interval(NamedTuple):
    """Lower and upper end."""

    low: float
    high: float


def clopper_pearson(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """The exact interval of a rate: it covers the truth at least as often as its confidence.

    Example:
        >>> low, high = clopper_pearson(5, 100)
        >>> round(low, 4), round(high, 4)
        (0.0164, 0.1128)
    """
    if not 0 <= successes <= trials or trials < 1:
        raise InputError(f"{successes} of {trials} is not a rate.")
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return Interval(low, high)


def delong(scores: ArrayLike, members: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Interval of the AUC from its placements (DeLong et al., 1988), on the logit scale so that it stays in (0, 1).

    Example:
        >>> low, high = delong([4.0, 3.0, 2.5, 2.0, 1.0, 0.5], [1, 1, 0, 1, 0, 0])
        >>> 0 < low < 0.8889 < high < 1
        True
    """
    values, mask = checked(scores, members)
    above, below = placements(values, mask)
    area = float(above.mean())
    spread = sum(float(np.var(part, ddof=1)) / len(part) for part in (above, below) if len(part) > 1)
    if area in (0.0, 1.0) or spread == 0.0:
        # separation is perfect in the sample: all that is known is that none of min(n, m) independent pairs failed
        pairs = min(len(above), len(below))
        return clopper_pearson(round(area * pairs), pairs, confidence=confidence)
    reach = float(norm.ppf((1 + confidence) / 2)) * np.sqrt(spread) / (area * (1 - area))
    return Interval(float(expit(logit(area) - reach)), float(expit(logit(area) + reach)))


def placements(scores: FloatArray, members: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The share of non-members below each member [n₁], and of members above each non-member [n₀]; ties count half.

    The mean of either is the AUC, and their variances give its error (DeLong et al., 1988).

    Example:
        >>> placements(np.array([3.0, 1.0, 2.0, 1.0]), np.array([True, True, False, False]))
        (array([1.  , 0.25]), array([0.5 , 0.75]))
    """
    inside, outside = scores[members], scores[~members]
    ranks = rankdata(scores)  # rank among all minus rank among its own side: how many of the other side are below
    return (
        (ranks[members] - rankdata(inside)) / len(outside),
        1 - (ranks[~members] - rankdata(outside)) / len(inside),
    )
