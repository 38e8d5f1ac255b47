"""LiRA: the likelihood-ratio attack on logit margins (Carlini et al., S&P 2022)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import log_ndtr

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.shared.in_out_moments import (
    ALMOST_ZERO,
    Moments,
    left_out,
    moments,
    moments_among,
    simulated_sets,
    wanted_sides,
)
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import log_normal_farther
from glasshouse.core.threads import side_by_side
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import rows_without

_MODELS_FOR_OWN_VARIANCE = 16  # with fewer on a side, one variance for all records is better than one per record
_SETS = 4  # sets of references whose Gaussians are in memory at once
_LOG_OF_ROOT = np.log(np.sqrt(2 * np.pi))


Side = tuple[FloatArray, FloatArray]  # mean and standard deviation of the margin, [N] each, of in- or out-models


@register("lira")
@dataclass(frozen=True, kw_only=True)
class LiRA(Attack):
    r"""Log-likelihood ratio of the target's margin under Gaussians fitted to in-models and to out-models.

    Online :math:`\log N(h; \mu_{in}, \sigma_{in}^2) - \log N(h; \mu_{out}, \sigma_{out}^2)`; offline the one-sided
    :math:`\log \Phi((h - \mu_{out}) / \sigma_{out})`, where h is the target's logit margin.

    For a regression h is the residual with its sign. Online the formula is the same. Offline the paper asks how likely
    an out-model is less sure than the target. A regressor is less sure of a record the farther its prediction is off,
    so this is :math:`\log \Pr[|H| \ge |h|]` for :math:`H \sim N(\mu_{out}, \sigma_{out}^2)`.

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
        statistic, members = evidence.shadow_statistic, evidence.shadow_members
        sides = self._sides(evidence, [moments(statistic, members == inside) for inside in wanted_sides(self.mode)])
        return _ratios(evidence.target_statistic, sides, regression=evidence.regression)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target: margins are computed once, and a pair shares its Gaussians."""
        statistic, members = evidence.shadow_statistic, evidence.shadow_members
        for targets, sets in simulated_sets(members, most=_SETS):
            sides = self._sides_among(evidence, statistic, sets)

            def of_target(pair: tuple[int, int], sides: list[list[Side]] = sides) -> FloatArray:
                return _ratios(statistic[pair[0]], sides[pair[1]], regression=evidence.regression)

            scores = side_by_side(of_target, targets, records=evidence.records)
            yield from ((one, members[k]) for one, (k, _) in zip(scores, targets, strict=True))

    def scores_among(self, evidence: Evidence, sets: Sequence[Positions]) -> Iterator[FloatArray | None]:
        """Scores of the target beside some of the shadow models, for each set of them; margins are computed once."""
        statistic, own = evidence.shadow_statistic, evidence.target_statistic
        left = [left_out(rows, evidence.models) for rows in sets]
        for start in range(0, len(sets), _SETS):
            try:
                found = self._sides_among(evidence, statistic, left[start : start + _SETS])
            except InputError:  # one of them is too small for this attack: then each is tried
                yield from super().scores_among(evidence, sets[start : start + _SETS])
            else:
                yield from (_ratios(own, sides, regression=evidence.regression) for sides in found)

    def _sides_among(self, evidence: Evidence, statistic: FloatArray, sets: Sequence[Positions]) -> list[list[Side]]:
        """The Gaussians for each set of rows of the pool that is left out, [L, 1] or [L, N], of statistics [K, N]."""
        members = evidence.shadow_members
        found = [moments_among(statistic, members == inside, sets) for inside in wanted_sides(self.mode)]
        return [
            self._sides(evidence, [Moments(*(part[number] for part in one)) for one in found], left)
            for number, left in enumerate(sets)
        ]

    def _sides(self, evidence: Evidence, found: list[Moments], left: Positions | None = None) -> list[Side]:
        """The Gaussians from the moments of each wanted side of the pool, without the models that are left out."""
        fewest = min(one.models.min() for one in found)
        own = self._own_variance(int(fewest))
        if fewest < (least := 2 if own else 1):
            asked = evidence if left is None else evidence.among(rows_without(left, evidence.models))
            for inside in wanted_sides(self.mode):
                asked.require_side(inside=inside, models=least)
        return [_side(one, own=own) for one in found]

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
    if len(sides) == 2:
        outside, inside = (_log_density(target, *side) for side in sides)
        return inside - outside
    mean, spread = sides[0]
    if regression:
        return log_normal_farther(target / spread, mean / spread)
    return np.asarray(log_ndtr((target - mean) / spread))


def _log_density(value: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Log of the normal density, [N]; scipy's checks of its arguments take four times as long."""
    return np.asarray(-(((value - mean) / spread) ** 2) / 2.0 - _LOG_OF_ROOT - np.log(spread))


def _side(found: Moments, *, own: bool) -> Side:
    """The Gaussian of each record's margin, from its moments over the in-models or the out-models."""
    if own:
        return found.mean, np.sqrt(np.maximum(found.squares / (found.models - 1), ALMOST_ZERO))
    return found.mean, np.sqrt(np.full(len(found.mean), found.pooled_variance("LiRA")))
