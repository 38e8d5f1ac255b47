"""LiRA: the likelihood-ratio attack on logit margins (Carlini et al., S&P 2022).

BaVarIA: LiRA whose variances borrow from each other (Brännvall 2026, arXiv 2603.11799).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, log_ndtr, poch, polygamma, stdtr

from glasshouse.attacks.attack import Attack, register
from glasshouse.attacks.in_out_moments import (
    ALMOST_ZERO,
    Moments,
    MomentsAttack,
    left_out,
    moments,
    moments_among,
    sets_at_once,
    side_moments,
    simulated_sets,
    wanted_sides,
)
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import log_normal_farther
from glasshouse.core.threads import side_by_side
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import rows_without

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
class BaVarIA(MomentsAttack):
    r"""Log-likelihood ratio of the target's margin under Student-t predictives with empirical-Bayes variances.

    With n models on a side, mean μ and variance s² of their margins, and a prior with :math:`d_0` degrees of freedom
    at :math:`s_0^2`, the margin of one more model is t with :math:`d_0 + n - 1` degrees of freedom around μ, with scale
    :math:`\tilde s \sqrt{1 + 1/n}` and :math:`\tilde s^2 = (d_0 s_0^2 + (n - 1) s^2) / (d_0 + n - 1)`. The prior of a
    side is fitted to the logarithms of all records' variances. Offline: the one-sided log tail of the out-models' t.

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

    def _learned(self, evidence: Evidence) -> tuple[VariancePrior, ...]:
        return tuple(fit_variance_prior(side) for side in side_moments(evidence, self.mode))

    def _scores(
        self, fit: Sequence[VariancePrior], evidence: Evidence, statistic: FloatArray, sides: Sequence[Moments]
    ) -> FloatArray:
        """Log ratios, offline log tail probabilities."""
        predictives = []  # degrees of freedom, location and scale of the margin of one more model, [N] each
        for prior, side in zip(fit, sides, strict=True):
            freedom, variance = prior.updated(side)
            predictives.append((freedom, side.mean, np.sqrt(variance * (1 + 1 / side.models))))
        if len(predictives) == 2:
            outside, inside = (student_log_density(statistic, *predictive) for predictive in predictives)
            return np.asarray(inside - outside)
        freedom, mean, scale = predictives[0]
        if not evidence.regression:
            return _student_log_cdf((statistic - mean) / scale, freedom)
        away = np.abs(statistic)  # how likely an out-model is farther off, as for LiRA
        tails = [_student_log_cdf((sign * mean - away) / scale, freedom) for sign in (-1.0, 1.0)]
        return np.asarray(np.minimum(np.logaddexp(*tails), 0.0))


def fit_variance_prior(side: Moments) -> VariancePrior:
    """The prior under which the logarithms of the records' variances have their observed mean and spread.

    The logarithm of a variance with d degrees of freedom has the variance ψ'(d/2); what is left of the observed one is
    the prior's ψ'(d₀/2) (Smyth 2004). Records with only one model are ignored.
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


def student_log_density(value: FloatArray, freedom: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Log density [N] of Student's t, in the bits of `scipy.stats.t.logpdf`, whose checks take longer than the work."""
    apart = (value - mean) / scale
    few = freedom[:1] if (freedom == freedom[:1]).all() else freedom  # usually all records have equally many models
    if np.isinf(few).all():
        return np.asarray(-(apart**2) / 2.0 - _LOG_OF_ROOT - np.log(scale))
    constant = np.log(poch(0.5 * few, 0.5)) - 0.5 * (np.log(few) + np.log(np.pi))
    return np.asarray(constant - (few + 1) / 2 * np.log1p(apart * apart / few) - np.log(scale))


def _student_log_cdf(value: FloatArray, freedom: FloatArray) -> FloatArray:
    """Log of Student's distribution function, with full precision near 0, where the likely members are."""
    tail = stdtr(freedom, -np.abs(value))
    with np.errstate(under="ignore"):
        return np.asarray(np.where(value > 0, np.log1p(-tail), np.log(np.maximum(tail, np.finfo(np.float64).tiny))))


_MODELS_FOR_OWN_VARIANCE = 16  # with fewer on a side, one variance for all records is better than one per record
_LOG_OF_ROOT = np.log(np.sqrt(2 * np.pi))

Side = tuple[FloatArray, FloatArray]  # mean [N] and standard deviation, [N] or [1], of the margin of in- or out-models


@register("lira")
@dataclass(frozen=True, kw_only=True)
class LiRA(Attack):
    r"""Log-likelihood ratio of the target's margin under Gaussians fitted to in-models and to out-models.

    Online :math:`\log N(h; \mu_{in}, \sigma_{in}^2) - \log N(h; \mu_{out}, \sigma_{out}^2)`; offline the one-sided
    :math:`\log \Phi((h - \mu_{out}) / \sigma_{out})`, where h is the target's logit margin.

    For a regression h is the residual with its sign. A regressor is less sure of a record the farther its prediction is
    off, so offline it is :math:`\log \Pr[|H| \ge |h|]` for :math:`H \sim N(\mu_{out}, \sigma_{out}^2)`.

    Args:
        mode: ``"online"`` or ``"offline"``.
        variance: ``"record"`` fits σ record by record, ``"global"`` pools the spread around each record's mean into
            one σ per side; ``"auto"`` uses ``"global"`` if a side has fewer than 16 models.

    Example:
        >>> losses, members = [[0.1, 2.5], [0.2, 1.5], [1.5, 0.2], [2.5, 0.1]], [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
        >>> LiRA().score(evidence).round(2)
        array([ 12.44, -24.72])
    """

    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    log_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True

    mode: Mode = "online"
    variance: Literal["auto", "record", "global"] = "auto"

    def __post_init__(self) -> None:
        if self.variance not in ("auto", "record", "global"):
            raise InputError(f'variance: "{self.variance}" is not one of auto, record, global.')

    def score(self, evidence: Evidence) -> FloatArray:
        """Log ratios (offline log tail probabilities), [N]; higher means member."""
        sides_of = (evidence.shadow_members == inside for inside in wanted_sides(self.mode))
        sides = self._sides(evidence, [moments(evidence, who) for who in sides_of])
        return _ratios(evidence.target_statistic, sides, regression=evidence.regression)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target; a pair shares its Gaussians."""
        for targets, sets in simulated_sets(evidence.shadow_members):
            sides = self._sides_among(evidence, sets)

            def of_target(pair: tuple[int, int], sides: list[list[Side]] = sides) -> FloatArray:
                return _ratios(evidence.statistic_of(pair[0]), sides[pair[1]], regression=evidence.regression)

            scores = side_by_side(of_target, targets, records=evidence.records)
            yield from ((one, evidence.shadow_members[k]) for one, (k, _) in zip(scores, targets, strict=True))
            del of_target, scores, sides  # before the next are made

    def scores_among(self, evidence: Evidence, sets: Sequence[Positions]) -> Iterator[FloatArray | None]:
        """Scores of the target beside some of the shadow models, for each set of them, several at once."""
        own, many = evidence.target_statistic, sets_at_once(evidence.records)
        for some in (sets[start : start + many] for start in range(0, len(sets), many)):
            try:
                found = self._sides_among(evidence, [left_out(rows, evidence.models) for rows in some])
            except InputError:  # one of them is too small for this attack: then each is tried
                yield from super().scores_among(evidence, some)
            else:
                yield from (_ratios(own, sides, regression=evidence.regression) for sides in found)

    def _sides_among(self, evidence: Evidence, sets: Sequence[Positions]) -> list[list[Side]]:
        """The Gaussians for each set of rows of the pool that is left out, [L, 1] or [L, N]."""
        members = evidence.shadow_members
        found = [moments_among(evidence, members == inside, sets) for inside in wanted_sides(self.mode)]
        return [self._sides(evidence, [one.of_set(at) for one in found], left) for at, left in enumerate(sets)]

    def _sides(self, evidence: Evidence, found: list[Moments], left: Positions | None = None) -> list[Side]:
        """The Gaussians from the moments of each wanted side of the pool, without the models that are left out."""
        fewest = min(one.models.min() for one in found)
        own = self._own_variance(int(fewest))
        if fewest < (least := 2 if own else 1):
            asked = evidence if left is None else evidence.among(rows_without(left, evidence.models))
            for inside in wanted_sides(self.mode):
                asked.require_side(inside=inside, models=least)
        if own:
            return [(one.mean, np.sqrt(np.maximum(one.squares / (one.models - 1), ALMOST_ZERO))) for one in found]
        return [(one.mean, np.sqrt([one.pooled_variance("LiRA")])) for one in found]

    def _own_variance(self, fewest: int) -> bool:
        """Whether each record has its own variance, where a side has at least so many models."""
        return self.variance == "record" or (self.variance == "auto" and fewest >= _MODELS_FOR_OWN_VARIANCE)

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its kind of variance chosen by the number of models on a side."""
        members = evidence.shadow_members
        fewest = min((members == inside).sum(axis=0).min() for inside in wanted_sides(self.mode))
        return dataclasses.replace(self, variance="record" if self._own_variance(int(fewest)) else "global")


def _ratios(target: FloatArray, sides: list[Side], *, regression: bool) -> FloatArray:
    """Log ratios [N] of a target's statistics, or log tail probabilities if only the out-models are known."""
    if len(sides) == 2:  # logs of the normal density; scipy's checks of its arguments take four times as long
        outside, inside = (-(((target - mean) / sd) ** 2) / 2.0 - _LOG_OF_ROOT - np.log(sd) for mean, sd in sides)
        return np.asarray(inside - outside)
    mean, spread = sides[0]
    if regression:
        return log_normal_farther(target / spread, mean / spread)
    return np.asarray(log_ndtr((target - mean) / spread))
