"""The regressed likelihood ratio: LiRA whose means are learned from simulated targets."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import expit

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.shared.in_out_moments import ALMOST_ZERO, Moments, side_moments, simulated_moments, wanted_sides
from glasshouse.attacks.shared.prior import check_prior, prior_log_odds
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.evidence import Evidence, Mode

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


def record_folds(records: int, *, mode: Mode = "offline", folds: int, seed: int) -> Positions:
    """The fold of each record, [N], drawn at random: folds of about equal size offline, a single one online."""
    count = 1 if mode == "online" else min(folds, max(records, 2))
    if records < count:
        raise InputError("records: 1 is too few, since a record is judged by a fit on other records; give 2 or more.")
    return np.asarray(generator(seed, "folds").permutation(records) % count)


def fit_sides(examples: Iterable[Example], folds: Positions) -> SidesFit:
    """Least squares over all simulated targets; with several folds, a record's numbers come from the other folds.

    Rows are added one target at a time to one small triangular matrix per fold and side (QR), so that memory stays
    small and no digits are lost by squaring.
    """
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


@register("regressed")
@dataclass(frozen=True, kw_only=True)
class Regressed(Attack):
    r"""Posterior probability of membership from the likelihood ratio of two regressions.

    The margin h of a record given membership m is Gaussian with mean
    :math:`a_m + b_m \mu_{in} + c_m \mu_{out}` and variance :math:`\sigma_m^2`, where :math:`\mu_{in}` and
    :math:`\mu_{out}` are the record's mean margins over in- and out-models. The eight numbers are fitted by
    least squares to all simulated targets. Offline there is no :math:`\mu_{in}`, and the six numbers that judge a
    record come only from other records: an attacker without in-models of a record cannot learn from them.

    LiRA uses the means of a few models as they are. Here noisy means are shrunk as far as they mislead. For a
    regression h is the residual, as for LiRA: that of a member is pulled towards 0 by a factor, which a line can learn.

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

    version: ClassVar[int] = 2
    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True
    _learns_elsewhere: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    folds: int = 5
    seed: int = 0
    fit_: SidesFit | None = dataclasses.field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.folds < 2:
            raise InputError(f"folds: {self.folds} is too few; a record's numbers come from other folds. Use 5.")

    def score(self, evidence: Evidence) -> FloatArray:
        """Posteriors, [N]; higher means member."""
        signals = mean_margins(side_moments(evidence, self.mode))
        return self._posteriors(self._fit(evidence), signals, evidence.target_statistic[:, None])

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its eight numbers fitted to this pool."""
        return dataclasses.replace(self, fit_=self._fit(evidence))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Posteriors [N] and members [N] of each simulated target, all of them in one pass over the pool."""
        fit = self._fit(evidence)
        for signals, margins, members in self._examples(evidence):
            yield self._posteriors(fit, signals, margins), members

    def _posteriors(self, fit: SidesFit, signals: FloatArray, margins: FloatArray) -> FloatArray:
        return np.asarray(expit(fit.log_ratio(signals, margins) + prior_log_odds(self.prior, len(margins))))

    def _fit(self, evidence: Evidence) -> SidesFit:
        folds = record_folds(evidence.records, mode=self.mode, folds=self.folds, seed=self.seed)
        return self.fit_ or fit_sides(self._examples(evidence), folds)

    def _examples(self, evidence: Evidence) -> Iterator[Example]:
        for one in simulated_moments(evidence, wanted_sides(self.mode), spread=False):
            yield Example(mean_margins(one.sides), one.statistic[:, None], one.members)


def mean_margins(sides: Sequence[Moments]) -> FloatArray:
    """Mean margins [N, 2] of each record over in- and out-models; offline over out-models only, [N, 1]."""
    return np.stack([side.mean for side in reversed(sides)], axis=1)
