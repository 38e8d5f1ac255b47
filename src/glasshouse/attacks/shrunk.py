"""Shrunk LiRA: each record's shift between in- and out-models is shrunk towards the shift common to all records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.stats import norm

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.regressed import Example, SidesFit, fit_sides, record_folds
from glasshouse.attacks.shared.in_out_moments import Moments, side_moments, simulated_moments, wanted_sides
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import at_rows, left_out_models, rows_without

_CLEARLY = 5.0  # standard errors
_PANELS = 4  # more cost time and change little


@dataclass(frozen=True, kw_only=True)
class CommonShift:
    """How much higher margins of members are, estimated from all records."""

    shift: float  # δ, the mean shift
    variance: float  # τ², the variance of the shifts of single records around it
    inside: float  # σ_in², the variance of a record's margin over in-models
    outside: float  # σ_out², the same over out-models
    error: float = 0.0  # standard error of the mean shift

    @property
    def clear(self) -> bool:
        """Whether members clearly have higher margins; if not, the pool shows no leak."""
        return self.shift > _CLEARLY * self.error

    def predictive(self, within: Moments, outside: Moments, *, inside: bool) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the margin of one more model that trained on the record, or did not; [N] each.

        The mean of a side is estimated twice: from its own models, and from the other side plus or minus the shift.
        Both are weighted by their precision. If shifts differ much (τ² large), only the side's own models count.
        """
        noise_in, noise_out = self.inside / within.models, self.outside / outside.models
        if inside:
            spread, own, other = self.inside, (within.mean, noise_in), (outside.mean + self.shift, noise_out)
        else:
            spread, own, other = self.outside, (outside.mean, noise_out), (within.mean - self.shift, noise_in)
        far = other[1] + self.variance
        share = far / (far + own[1])  # of the side's own models
        return share * own[0] + (1 - share) * other[0], spread + share * own[1]


@register("shrunk-lira")
@dataclass(frozen=True, kw_only=True)
class ShrunkLiRA(Attack):
    r"""Log-likelihood ratio under Gaussians whose means are empirical-Bayes estimates.

    A record's margins are :math:`N(\mu, \sigma_{out}^2)` outside and :math:`N(\mu + \delta_v, \sigma_{in}^2)` inside,
    its shift :math:`\delta_v \sim N(\delta, \tau^2)`; δ, τ² and one variance per side come from all records by moments.
    Offline a record has no in-mean: :math:`\delta_v` is δ, and the shift and both variances come from simulated targets
    on other records.

    Online the scale of the scores depends on the number of references, and without a leak nothing else decides them. So
    the target is compared with as many references as a simulated target has: in several panels, whose scores are
    averaged, or in one panel if the pool shows no clear shift.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        folds: number of groups of records for fitting offline.
        seed: seed of the draw of these groups.

    Example:
        >>> losses, members = [[0.1, 2.5], [0.2, 1.5], [1.5, 0.2], [2.5, 0.1]], [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
        >>> scores = ShrunkLiRA().score(evidence)
        >>> bool(scores[0] > 0 > scores[1])
        True
    """

    version: ClassVar[int] = 3
    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    log_ratio: ClassVar[bool] = True
    _learns_elsewhere: ClassVar[bool] = True
    needs_classes: ClassVar[str] = (
        "it moves all records by one common shift, and residuals move towards 0 from both sides"
    )

    mode: Mode = "online"
    folds: int = 5
    seed: int = 0
    fit_: CommonShift | SidesFit | None = dataclasses.field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise InputError(f"folds: {self.folds} is too few; a record's numbers come from other folds. Use 5.")

    def score(self, evidence: Evidence) -> FloatArray:
        """Log ratios, [N]; higher means member."""
        fit = self._fit(evidence)
        if isinstance(fit, SidesFit):
            return self._ratio(fit, evidence)
        panels = _panels(evidence.shadow_members)
        views = [evidence.among(rows) for rows in panels[: None if fit.clear else 1]] or [evidence]
        return np.asarray(np.mean([self._ratio(fit, view) for view in views], axis=0))

    def flag_scores(self, evidence: Evidence) -> FloatArray:
        """Scores [N] of the target by one panel, as those of a simulated target."""
        return self._ratio(self._fit(evidence), evidence.in_place_of(0))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [N] and members [N] of each simulated target, whose references are one panel."""
        fit = self._fit(evidence)
        for target in simulated_moments(evidence, wanted_sides(self.mode)):
            yield _log_ratio(fit, target.statistic, target.sides), target.members

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its shift and variances fitted to this pool."""
        return dataclasses.replace(self, fit_=self._fit(evidence))

    def _fit(self, evidence: Evidence) -> CommonShift | SidesFit:
        if self.fit_ is not None:
            return self.fit_
        if self.mode == "online":
            outside, within = side_moments(evidence, self.mode)
            return fit_common_shift(within, outside)
        nothing = np.empty((evidence.records, 0))  # the out-mean is subtracted, and references have no other signal
        examples = (
            Example(nothing, (one.statistic - one.sides[0].mean)[:, None], one.members)
            for one in simulated_moments(evidence, [False], spread=False)
        )
        return fit_sides(examples, record_folds(evidence.records, folds=self.folds, seed=self.seed))

    def _ratio(self, fit: CommonShift | SidesFit, evidence: Evidence) -> FloatArray:
        """Log ratios, [N], of a target that is compared with all shadow models of the evidence."""
        return _log_ratio(fit, evidence.target_statistic, side_moments(evidence, self.mode))


def _log_ratio(fit: CommonShift | SidesFit, target: FloatArray, sides: list[Moments]) -> FloatArray:
    """Log ratios [N] of a target's margins, from the moments over out-models and, online, in-models."""
    if isinstance(fit, SidesFit):  # how far the margin lies above the mean of the out-models
        return fit.log_ratio(np.empty((len(target), 0)), (target - sides[0].mean)[:, None])
    outside, within = sides
    densities = []
    for inside in (True, False):
        mean, variance = fit.predictive(within, outside, inside=inside)
        densities.append(norm.logpdf(target, mean, np.sqrt(variance)))
    return np.asarray(densities[0] - densities[1])


def _panels(members: BoolArray) -> list[Positions]:
    """Sets of references for the target, each as large as that of a simulated target; none if there are too few models.

    A panel without an in-model or an out-model of some record cannot be used.
    """
    if len(members) < 4:
        return []
    distinct: dict[bytes, Positions] = {}  # a pair has the same
    for left in left_out_models(members):
        if len(distinct) == _PANELS:
            break
        distinct.setdefault(left.tobytes(), left)
    panels = [rows_without(left, len(members)) for left in distinct.values()]
    inside = [members[at_rows(rows, members.shape[1])] for rows in panels]
    return [rows for rows, who in zip(panels, inside, strict=True) if (who.any(axis=0) & ~who.all(axis=0)).all()]


def fit_common_shift(within: Moments, outside: Moments) -> CommonShift:
    """The shift and its variance that match the observed moments of the records' differences of means."""
    spreads = [side.pooled_variance("shrunk LiRA") for side in (within, outside)]
    shifts = within.mean - outside.mean
    noise = spreads[0] / within.models + spreads[1] / outside.models
    scatter = float(shifts.var(ddof=1)) if len(shifts) > 1 else 0.0
    return CommonShift(
        shift=float(shifts.mean()),
        variance=max(scatter - float(noise.mean()), 0.0),
        inside=spreads[0],
        outside=spreads[1],
        error=float(np.sqrt(scatter / len(shifts))),
    )
