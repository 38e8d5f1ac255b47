"""Which leak an audit of this size could have shown at all, and how many records a finer one needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, binom, hypergeom, norm

from glasshouse.evaluation.leakage import error_share
from glasshouse.evaluation.roc import allowed_wrong

_CERTAINTY = 0.8  # found in four of five such audits
_ERROR = 0.05  # of all figures of an audit together
_AUCS = (0.6, 0.55, 0.52, 0.51, 0.505, 0.502, 0.501)  # what a finer audit may aim at
_RATES = (0.01, 0.001, 1e-4, 1e-5)
_STEADY = 10  # allowed false positives on which a rate can rest


@dataclass(frozen=True)
class RatePower:
    """What can be shown at one false-positive rate.

    Args:
        wanted: the wanted rate.
        chance: (k + 1) / (n0 + 1), what guessing finds if k of n0 non-members may be accused.
        tpr: the smallest true-positive rate that is found in four of five audits.
    """

    wanted: float
    chance: float
    tpr: float


@dataclass(frozen=True)
class Power:
    """Which leak an audit could have shown.

    Args:
        figures: how many figures (AUC and each rate, of each attack) share the error of 5 %, equally or with most of it
            for the one that simulated targets rank first.
        auc: the smallest AUC that is found in four of five audits.
        rates: the smallest true-positive rate at each wanted rate.
        finer_auc: the next smaller AUC that one may want to find.
        records_for_auc: records that are needed for it, with this share of members.
        finer_rate: the next smaller rate for which fewer than ten false positives are allowed here.
        non_members_for_rate: non-members that are needed for it: ten allowed false positives.
    """

    figures: int
    auc: float
    rates: tuple[RatePower, ...]
    finer_auc: float
    records_for_auc: int
    finer_rate: float
    non_members_for_rate: int


def audit_power(
    members: int, non_members: int, fprs: Sequence[float], *, attacks: int, first: str | None = None
) -> Power:
    """Which leak an audit could have shown, from its counts alone.

    Args:
        members: how many members are audited.
        non_members: how many others.
        fprs: the wanted false-positive rates.
        attacks: how many attacks share the error.
        first: the figure, ``"auc"`` or ``"tpr@0.01"``, of one attack that gets most of the error (`error_share`).

    Example:
        >>> power = audit_power(1000, 1000, [0.01], attacks=3)
        >>> round(power.auc, 3), round(power.rates[0].tpr, 3), power.finer_auc, power.non_members_for_rate
        (0.542, 0.033, 0.52, 10000)
    """
    figures = attacks * (1 + len(fprs))

    def among(figure: str) -> float:
        """Among how many figures the error would be shared equally for the best attack to get what it gets here."""
        return 1 / error_share(figures, first=None if first is None else figure == first)

    area = smallest_auc(members, non_members, figures=among("auc"))
    clearly = 0.5 + 0.8 * (area - 0.5)  # what this audit almost shows is not worth another one
    finer = next((goal for goal in _AUCS if goal <= clearly), 0.5 + (area - 0.5) / 2)
    share = members / (members + non_members)
    rate = next((goal for goal in _RATES if allowed_wrong(goal, non_members) < _STEADY), _RATES[-1] / 10)
    return Power(
        figures=figures,
        auc=area,
        rates=tuple(
            RatePower(fpr, (allowed_wrong(fpr, non_members) + 1) / (non_members + 1), smallest)
            for fpr in fprs
            if (smallest := smallest_tpr(members, non_members, fpr, figures=among(f"tpr@{fpr:g}"))) is not None
        ),
        finer_auc=finer,
        records_for_auc=_records_for(finer, share, figures=among("auc")),
        finer_rate=rate,
        non_members_for_rate=math.ceil(_STEADY / rate * (1 - 1e-12)),
    )


def smallest_auc(members: int, non_members: int, *, figures: float = 1) -> float:
    """The smallest AUC that a one-sided test at 5 % finds in four of five audits.

    Without a leak the AUC has the variance (n0 + n1 + 1) / (12 n0 n1) of the rank sum (Mann and Whitney 1947).

    Example:
        >>> round(smallest_auc(1000, 1000), 3)
        0.532
    """
    spread = math.sqrt((members + non_members + 1) / (12 * members * non_members))
    return min(1.0, 0.5 + _reach(figures) * spread)


def smallest_tpr(members: int, non_members: int, fpr: float, *, figures: float = 1) -> float | None:
    """The smallest TPR at a rate that a test at 5 % finds in four of five audits; None if not even 100 % is enough.

    If k false positives are allowed, the threshold is the (k + 1)-th highest score of a non-member. Without a leak the
    order is random, which gives the test (`_members_needed`), and the share U of members above the threshold has the
    distribution Beta(k + 1, n0 - k). With a leak that share is taken as Φ(Φ⁻¹(U) + μ), a binormal ROC curve; the μ that
    is found in four of five audits gives the answer at the mean of U.

    Example:
        >>> round(smallest_tpr(1000, 1000, 0.01), 3)
        0.027
    """
    allowed = allowed_wrong(fpr, non_members)
    least = _members_needed(members, non_members, allowed, error=_ERROR / figures)
    if least > members:
        return None
    grid = (np.arange(400) + 0.5) / 400  # quantiles of U
    shares = norm.ppf(beta.ppf(grid, allowed + 1, non_members - allowed))

    def missing(shift: float) -> float:
        return float(binom.sf(least - 1, members, norm.cdf(shares + shift)).mean()) - _CERTAINTY

    if missing(40.0) < 0:
        return None
    shift = float(brentq(missing, 0.0, 40.0, xtol=1e-6))
    return float(norm.cdf(norm.ppf((allowed + 1) / (non_members + 1)) + shift))


def _members_needed(members: int, non_members: int, allowed: int, *, error: float) -> int:
    """The smallest number of members above the threshold that chance reaches with at most this probability.

    c members come before non-member k + 1 exactly if at least c of the first c + k records are members: hypergeometric.
    """
    low, high = 0, members + 1  # chance reaches low too often; high is enough, or more than there are
    while high - low > 1:
        middle = (low + high) // 2
        often = float(hypergeom.sf(middle - 1, members + non_members, members, middle + allowed))
        low, high = (middle, high) if often > error else (low, middle)
    return high


def _records_for(area: float, share: float, *, figures: float) -> int:
    """Records, members and others, for which `smallest_auc` is this small; two digits are enough."""
    needed = (_reach(figures) / (area - 0.5)) ** 2 / (12 * share * (1 - share))
    step = 10.0 ** (math.floor(math.log10(needed)) - 1)
    return round(math.ceil(needed / step) * step)


def _reach(figures: float) -> float:
    return float(norm.isf(_ERROR / figures) + norm.ppf(_CERTAINTY))
