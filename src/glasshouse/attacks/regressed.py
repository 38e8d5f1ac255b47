"""LiRA whose means are learned from all records and simulated targets.

The regressed likelihood ratio fits them by least squares; shrunk LiRA shrinks the shift of each record between in- and
out-models towards the shift common to all.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import expit
from scipy.stats import norm

from glasshouse.attacks.attack import Attack, V, register
from glasshouse.attacks.in_out_moments import (
    ALMOST_ZERO,
    Moments,
    MomentsAttack,
    panels,
    side_moments,
    simulated_moments,
    wanted_sides,
)
from glasshouse.attacks.prior import check_prior, prior_log_odds
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import at_rows

_SMALLEST_SIGNAL = 1e-12  # of the largest singular value
_SMALLEST_SHARE = 1e-9  # of the mean variance: two queries may have equal answers; the covariance must be invertible


class Example(NamedTuple):
    """One simulated target: signals of its references [N, F], its own answers [N, Q] and its members [N]."""

    signals: FloatArray
    margins: FloatArray
    members: BoolArray


class LinearGaussian(NamedTuple):
    """The distribution of answers given signals: Gaussian, with a mean linear in the signals and one covariance."""

    coefficients: FloatArray  # [1 + F, Q], constants in the first row
    covariance: FloatArray  # [Q, Q]

    def log_density(self, signals: FloatArray, margins: FloatArray) -> FloatArray:
        """Log-densities, [N], of answers [N, Q] given signals [N, F]."""
        residuals = margins - self.coefficients[0] - signals @ self.coefficients[1:]
        root = np.linalg.cholesky(self.covariance)
        scaled = solve_triangular(root, residuals.T, lower=True)  # [Q, N], independent with variance 1
        constant = np.log(np.diag(root)).sum() + 0.5 * len(root) * np.log(2 * np.pi)
        return np.asarray(-0.5 * (scaled**2).sum(axis=0) - constant)


class SidesFit(NamedTuple):
    """A Gaussian of members' answers and one of the others', for each fold of records."""

    inside: tuple[LinearGaussian, ...]  # of members; the one at position f judges records of fold f
    outside: tuple[LinearGaussian, ...]  # the same of the others
    folds: Positions  # [N] the fold of each record

    def log_ratio(self, signals: FloatArray, margins: FloatArray) -> FloatArray:
        """Log-likelihood ratios, [N], of members to others, for answers [N, Q] given signals [N, F]."""
        if len(margins) != len(self.folds):
            raise InputError(f"evidence: {len(margins)} records, but the attack was fitted to {len(self.folds)}.")
        ratio = np.empty(len(margins))
        for fold, (inside, outside) in enumerate(zip(self.inside, self.outside, strict=True)):
            at = self.folds == fold
            here, asked = signals[at], margins[at]
            ratio[at] = inside.log_density(here, asked) - outside.log_density(here, asked)
        return ratio


def _check_folds(folds: int) -> None:
    if folds < 2:
        raise InputError(f"folds: {folds} is too few; a record's numbers come from other folds. Use 5.")


def record_folds(records: int, *, mode: Mode = "offline", folds: int, seed: int) -> Positions:
    """The fold of each record, [N], drawn at random: folds of about equal size offline, a single one online."""
    count = 1 if mode == "online" else min(folds, max(records, 2))
    if records < count:
        raise InputError("records: 1 is too few, since a record is judged by a fit on other records; give 2 or more.")
    return np.asarray(generator(seed, "folds").permutation(records) % count)


def fit_sides(examples: Iterable[Example], folds: Positions) -> SidesFit:
    """Least squares over all simulated targets; with several folds, a record's numbers come from the other folds."""
    # rows are added to one small triangular matrix per fold and side (QR): little memory, and no digits are lost
    keys = list(itertools.product((True, False), range(int(folds.max()) + 1)))
    triangles: dict[tuple[bool, int], FloatArray] = {}
    rows, width = dict.fromkeys(keys, 0), 0
    for signals, margins, members in examples:
        width = signals.shape[1] + 1
        whole = np.column_stack([np.ones(len(margins)), signals, margins])
        for key in keys:
            mine = whole[(members == key[0]) & (folds == key[1])]
            known = triangles.get(key, np.empty((0, whole.shape[1])))
            triangles[key] = np.asarray(np.linalg.qr(np.concatenate([known, mine]), mode="r"))
            rows[key] += len(mine)
    made: dict[bool, list[LinearGaussian]] = {True: [], False: []}
    for side, fold in keys:
        elsewhere = [key for key in keys if key[0] == side and (key[1] != fold or len(keys) == 2)]
        made[side].append(_solved([triangles[key] for key in elsewhere], sum(rows[key] for key in elsewhere), width))
    return SidesFit(inside=tuple(made[True]), outside=tuple(made[False]), folds=folds)


def _solved(triangles: list[FloatArray], rows: int, width: int) -> LinearGaussian:
    """The regression on all rows behind triangular matrices of [signals, answers]; its residuals are theirs."""
    if rows == 0:
        raise InputError("shadow_members: no simulated target has a member and a non-member to learn from.")
    whole = np.concatenate(triangles)
    signals, answers = whole[:, :width], whole[:, width:]
    # a signal that differs between records only by rounding is ignored; without a limit it would count 1e12 times
    coefficients = np.asarray(np.linalg.lstsq(signals, answers, rcond=_SMALLEST_SIGNAL)[0], dtype=np.float64)
    residuals = answers - signals @ coefficients
    covariance = residuals.T @ residuals / max(rows - width, 1)
    floor = ALMOST_ZERO + _SMALLEST_SHARE * np.trace(covariance) / len(covariance)
    return LinearGaussian(coefficients=coefficients, covariance=covariance + floor * np.eye(len(covariance)))


@dataclass(frozen=True, kw_only=True)
class Regression(Attack[V]):
    """What the regressed likelihood ratios of records and of nodes share: one query, or several about all records."""

    version: ClassVar[int] = 2
    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    folds: int = 5
    seed: int = 0
    fit_: SidesFit | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        _check_folds(self.folds)

    @abc.abstractmethod
    def _asked(self, view: V) -> tuple[Evidence, ...]:
        """Evidence about all records, judged or not, of each query."""

    def _posteriors(self, view: V, log_ratio: FloatArray) -> FloatArray:
        """Posteriors of the judged records, from log-likelihood ratios of all."""
        return np.asarray(expit(log_ratio + prior_log_odds(self.prior, len(log_ratio))))

    def tuned(self, view: V) -> Self:
        """The same attack with its numbers learned from this pool; it does not look at the target."""
        return dataclasses.replace(self, fit_=self._fit(view))

    def score(self, view: V) -> FloatArray:
        """Posteriors, [N]."""
        asked = self._asked(view)
        signals = np.concatenate([mean_margins(side_moments(one, self.mode)) for one in asked], axis=1)
        margins = np.stack([one.target_statistic for one in asked], axis=1)
        return self._posteriors(view, self._fit(view).log_ratio(signals, margins))

    def simulated_scores(self, view: V) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Posteriors and members, [N] each, of each simulated target, by the few numbers that also judge the target."""
        fit = self._fit(view)
        for k, (signals, margins, _) in enumerate(self._examples(self._asked(view))):
            yield self._posteriors(view, fit.log_ratio(signals, margins)), view.audited(view.shadow_members[k])

    def _fit(self, view: V) -> SidesFit:
        if self.fit_ is not None:
            return self.fit_
        asked = self._asked(view)
        folds = record_folds(asked[0].records, mode=self.mode, folds=self.folds, seed=self.seed)
        return fit_sides(self._examples(asked), folds)

    def _examples(self, asked: tuple[Evidence, ...]) -> Iterator[Example]:
        """Of each simulated target, over all queries: mean margins of its references and its own, for every record."""
        sides = wanted_sides(self.mode)
        for targets in zip(*(simulated_moments(one, sides) for one in asked), strict=True):
            signals = np.concatenate([mean_margins(target.sides) for target in targets], axis=1)
            yield Example(signals, np.stack([one.statistic for one in targets], axis=1), targets[0].members)


@register("regressed")
@dataclass(frozen=True, kw_only=True)
class Regressed(Regression):
    r"""Posterior probability of membership from the likelihood ratio of two regressions.

    The margin h of a record given membership m is Gaussian with mean
    :math:`a_m + b_m \mu_{in} + c_m \mu_{out}` and variance :math:`\sigma_m^2`, where :math:`\mu_{in}` and
    :math:`\mu_{out}` are the record's mean margins over in- and out-models. The eight numbers are fitted by
    least squares to all simulated targets. Offline there is no :math:`\mu_{in}`, and the six numbers that judge a
    record come only from other records: an attacker without in-models of a record cannot learn from them.

    Noisy means of few models are so shrunk as far as they mislead. For a regression h is the residual, as for LiRA.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        prior: λ, the share of members expected before looking at the model: one number, or one per record.
        folds: number of groups of records for fitting offline.
        seed: seed of the draw of these groups.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.repeat(np.tile([[1, 0], [0, 1]], (3, 1)), 20, axis=1).astype(bool)  # [6, 40]
        >>> loss = np.logaddexp(0.0, rng.normal(size=(6, 40)) - 3.0 * members)
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss[2:], shadow_members=members[2:])
        >>> scores = Regressed().score(evidence)  # the first twenty trained the target
        >>> scores[:20].mean().round(1), scores[20:].mean().round(1)
        (np.float64(0.9), np.float64(0.0))
    """

    likelihood_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True
    _learns_elsewhere: ClassVar[bool] = True

    def _asked(self, evidence: Evidence) -> tuple[Evidence, ...]:
        return (evidence,)


def mean_margins(sides: Sequence[Moments]) -> FloatArray:
    """Mean margins [N, 2] of each record over in- and out-models; offline over out-models only, [N, 1]."""
    return np.stack([side.mean for side in reversed(sides)], axis=1)


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

        Two estimates of the mean, from the side's own models and from the other side and the shift, by their precision.
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
class ShrunkLiRA(MomentsAttack):
    r"""Log-likelihood ratio under Gaussians whose means are empirical-Bayes estimates.

    A record's margins are :math:`N(\mu, \sigma_{out}^2)` outside and :math:`N(\mu + \delta_v, \sigma_{in}^2)` inside,
    its shift :math:`\delta_v \sim N(\delta, \tau^2)`; δ, τ² and one variance per side come from all records by moments.
    Offline a record has no in-mean: :math:`\delta_v` is δ, and the shift and both variances come from simulated targets
    on other records.

    Online the scale of the scores depends on the number of references. So the target is compared with as many as a
    simulated target has: in several panels, whose scores are averaged, or in one if the pool shows no clear shift.

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
    quick_simulation: ClassVar[bool] = False
    _learns_elsewhere: ClassVar[bool] = True
    needs_classes: ClassVar[str] = (
        "it moves all records by one common shift, and residuals move towards 0 from both sides"
    )

    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        _check_folds(self.folds)

    def score(self, evidence: Evidence) -> FloatArray:
        """Log ratios, [N]; higher means member."""
        fit = self._fit(evidence)
        if isinstance(fit, SidesFit):
            return self._of_target(fit, evidence)
        sets = _panels(evidence.shadow_members)[: None if fit.clear else 1]
        views = [evidence.among(rows) for rows in sets] or [evidence]
        return np.asarray(np.mean([self._of_target(fit, view) for view in views], axis=0))

    def flag_scores(self, evidence: Evidence) -> FloatArray:
        """Scores [N] of the target by one panel, as those of a simulated target."""
        return self._of_target(self._fit(evidence), evidence.in_place_of(0))

    def _learned(self, evidence: Evidence) -> CommonShift | SidesFit:
        if self.mode == "online":
            outside, within = side_moments(evidence, self.mode)
            return fit_common_shift(within, outside)
        nothing = np.empty((evidence.records, 0))  # the out-mean is subtracted, and references have no other signal
        examples = (
            Example(nothing, (one.statistic - one.sides[0].mean)[:, None], one.members)
            for one in self._simulated(evidence)
        )
        return fit_sides(examples, record_folds(evidence.records, folds=self.folds, seed=self.seed))

    def _scores(
        self, fit: CommonShift | SidesFit, evidence: Evidence, statistic: FloatArray, sides: Sequence[Moments]
    ) -> FloatArray:
        """Log ratios."""
        if isinstance(fit, SidesFit):  # how far the margin lies above the mean of the out-models
            return fit.log_ratio(np.empty((len(statistic), 0)), (statistic - sides[0].mean)[:, None])
        outside, within = sides
        densities = []
        for inside in (True, False):
            mean, variance = fit.predictive(within, outside, inside=inside)
            densities.append(norm.logpdf(statistic, mean, np.sqrt(variance)))
        return np.asarray(densities[0] - densities[1])


def _panels(members: BoolArray) -> list[Positions]:
    """Sets of references for the target, as large as a simulated target's, with in- and out-models of every record."""
    if len(members) < 4:
        return []
    sets = panels(members, _PANELS)
    inside = [members[at_rows(rows, members.shape[1])] for rows in sets]
    return [rows for rows, who in zip(sets, inside, strict=True) if (who.any(axis=0) & ~who.all(axis=0)).all()]


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
