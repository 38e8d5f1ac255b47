"""BaVarIA: LiRA whose variances borrow from each other (Brännvall 2026, arXiv 2603.11799)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma, stdtr
from scipy.stats import t as student

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.shared.in_out_moments import ALMOST_ZERO, Moments, side_moments, simulated_moments, wanted_sides
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evidence import Evidence, Mode

_SMALLEST_SHARE = 1e-5  # of the median variance: the logarithm of a variance that happens to be 0 has no meaning
_LOG_FREEDOMS = (-20.0, 20.0)  # of half the degrees of freedom; more than this act like infinitely many


@dataclass(frozen=True, kw_only=True)
class VariancePrior:
    """Scaled inverse chi-squared prior of a record's variance: an inverse gamma with other parameters."""

    freedom: float  # d₀, the degrees of freedom that it counts for; infinite if all records have the same variance
    variance: float  # s₀², towards which it pulls

    def updated(self, side: Moments) -> tuple[FloatArray, FloatArray]:
        """Degrees of freedom and variance of each record, given its own margins, [N] each."""
        own = side.models - 1
        if np.isinf(self.freedom):
            variance = np.full(len(own), self.variance)
        else:
            variance = (self.freedom * self.variance + side.squares) / (self.freedom + own)
        return self.freedom + own, np.maximum(variance, ALMOST_ZERO)


@register("bavaria")
@dataclass(frozen=True, kw_only=True)
class BaVarIA(Attack):
    r"""Log-likelihood ratio of the target's margin under Student-t predictives with empirical-Bayes variances.

    With n models on a side, mean μ and variance s² of their margins, and a prior with :math:`d_0` degrees of freedom
    at :math:`s_0^2`, the margin of one more model is t with :math:`d_0 + n - 1` degrees of freedom around μ, with scale
    :math:`\tilde s \sqrt{1 + 1/n}` and :math:`\tilde s^2 = (d_0 s_0^2 + (n - 1) s^2) / (d_0 + n - 1)`. The prior of a
    side is fitted to the logarithms of all records' variances. Offline: the one-sided log tail of the out-models' t.

    LiRA has to choose between one variance per record, which few models estimate badly, and one for all. This attack
    combines both as far as the data support it.

    Args:
        mode: ``"online"`` or ``"offline"``.

    Example:
        >>> losses, members = [[0.1, 2.5], [0.2, 1.5], [1.5, 0.2], [2.5, 0.1]], [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
        >>> scores = BaVarIA().score(evidence)
        >>> bool(scores[0] > 0 > scores[1])
        True
    """

    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    log_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True

    mode: Mode = "online"
    priors_: tuple[VariancePrior, ...] | None = dataclasses.field(default=None, repr=False)  # outside, online inside

    def score(self, evidence: Evidence) -> FloatArray:
        """Log ratios (offline log tail probabilities), [N]; higher means member."""
        target, sides = evidence.target_statistic, side_moments(evidence, self.mode)
        return _scores(self._priors(evidence), target, sides, regression=evidence.regression)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target, without a copy of the pool for every one of them."""
        priors = self._priors(evidence)
        for target in simulated_moments(evidence, wanted_sides(self.mode)):
            yield _scores(priors, target.statistic, target.sides, regression=evidence.regression), target.members

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its priors, two numbers per side, fitted to this pool."""
        return dataclasses.replace(self, priors_=self._priors(evidence))

    def _priors(self, evidence: Evidence) -> tuple[VariancePrior, ...]:
        return self.priors_ or tuple(fit_variance_prior(side) for side in side_moments(evidence, self.mode))


def _scores(
    priors: Sequence[VariancePrior], target: FloatArray, sides: Sequence[Moments], *, regression: bool
) -> FloatArray:
    """Scores [N] of a target's statistics, from the moments of out-models and, online, in-models."""
    predictives = []  # degrees of freedom, location and scale of the margin of one more model, [N] each
    for prior, side in zip(priors, sides, strict=True):
        freedom, variance = prior.updated(side)
        predictives.append((freedom, side.mean, np.sqrt(variance * (1 + 1 / side.models))))
    if len(predictives) == 2:
        outside, inside = (student.logpdf(target, *predictive) for predictive in predictives)
        return np.asarray(inside - outside)
    freedom, mean, scale = predictives[0]
    if not regression:
        return _student_log_cdf((target - mean) / scale, freedom)
    away = np.abs(target)  # how likely an out-model is farther off, as for LiRA
    tails = [_student_log_cdf((sign * mean - away) / scale, freedom) for sign in (-1.0, 1.0)]
    return np.asarray(np.minimum(np.logaddexp(*tails), 0.0))


def fit_variance_prior(side: Moments) -> VariancePrior:
    """The prior under which the logarithms of the records' variances have their observed mean and spread.

    The logarithm of a variance with d degrees of freedom has the variance ψ'(d/2) even if all variances are equal.
    What is left of its observed variance is the prior's ψ'(d₀/2) (Smyth 2004). If nothing is left, all records get one
    variance. Records with only one model are ignored.
    """
    known = side.models > 1
    several = Moments(*(part[known] for part in side))
    pooled, freedom = several.pooled_variance("BaVarIA"), several.models - 1
    own = several.squares / freedom
    own = np.maximum(own, max(_SMALLEST_SHARE * float(np.median(own)), ALMOST_ZERO))
    logs = np.log(own) - digamma(freedom / 2) + np.log(freedom / 2)  # [records], each with mean log σ²
    counts, which = np.unique(freedom, return_inverse=True)  # few: ψ' takes long, and all records share its values
    left = float(logs.var(ddof=1) - polygamma(1, counts / 2)[which].mean()) if len(logs) > 1 else 0.0
    if left <= polygamma(1, np.exp(_LOG_FREEDOMS[1])):
        return VariancePrior(freedom=float(np.inf), variance=pooled)
    half = np.exp(brentq(lambda log: np.log(polygamma(1, np.exp(log)) / left), *_LOG_FREEDOMS))  # ψ'(half) = left
    return VariancePrior(freedom=float(2 * half), variance=float(np.exp(logs.mean() + digamma(half) - np.log(half))))


def _student_log_cdf(value: FloatArray, freedom: FloatArray) -> FloatArray:
    """Log of Student's distribution function, with full precision near 0, where the likely members are."""
    tail = stdtr(freedom, -np.abs(value))
    with np.errstate(under="ignore"):
        return np.asarray(np.where(value > 0, np.log1p(-tail), np.log(np.maximum(tail, np.finfo(np.float64).tiny))))
