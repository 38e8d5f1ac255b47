"""Gaussians whose means are linear in signals of the references, by least squares over all simulated targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.evidence import Mode

_SMALLEST_VARIANCE = 1e-12  # equal margins are possible; certainty is not
_SMALLEST_SIGNAL = 1e-12  # of the largest singular value
_SMALLEST_SHARE = 1e-9  # of the mean variance: two queries may have equal answers; the covariance must be invertible


class Example(NamedTuple):
    """One simulated target: signals of its references [N, F], its own answers [N, Q] and its members [N]."""

    signals: FloatArray
    margins: FloatArray
    members: BoolArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearGaussian:
    """The distribution of answers given signals: Gaussian, with a mean linear in the signals and one covariance.

    Args:
        coefficients: [1 + F, Q], constants in the first row.
        covariance: [Q, Q].

    Example:
        >>> line = LinearGaussian(coefficients=np.array([[1.0], [2.0]]), covariance=np.eye(1))
        >>> line.log_density(np.array([[3.0]]), np.array([[7.0]])).round(4)  # at its mean
        array([-0.9189])
    """

    coefficients: FloatArray
    covariance: FloatArray

    def log_density(self, signals: FloatArray, margins: FloatArray) -> FloatArray:
        """Log-densities, [N], of answers [N, Q] given signals [N, F]."""
        residuals = margins - self.coefficients[0] - signals @ self.coefficients[1:]
        root = np.linalg.cholesky(self.covariance)
        scaled = solve_triangular(root, residuals.T, lower=True)  # [Q, N], independent with variance 1
        constant = np.log(np.diag(root)).sum() + 0.5 * len(root) * np.log(2 * np.pi)
        return np.asarray(-0.5 * (scaled**2).sum(axis=0) - constant)


@dataclass(frozen=True, kw_only=True, eq=False)
class SidesFit:
    """A Gaussian of members' answers and one of the others', for each fold of records.

    Args:
        inside: Gaussians of members; the one at position f judges records of fold f.
        outside: the same of the others.
        folds: [N] the fold of each record.

    Example:
        >>> unit = LinearGaussian(coefficients=np.array([[0.0]]), covariance=np.eye(1))
        >>> shifted = LinearGaussian(coefficients=np.array([[1.0]]), covariance=np.eye(1))
        >>> fit = SidesFit(inside=(shifted,), outside=(unit,), folds=np.zeros(1, dtype=int))
        >>> fit.log_ratio(np.empty((1, 0)), np.array([[2.0]]))
        array([1.5])
    """

    inside: tuple[LinearGaussian, ...]
    outside: tuple[LinearGaussian, ...]
    folds: NDArray[np.intp]

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


def record_folds(records: int, *, mode: Mode = "offline", folds: int, seed: int) -> NDArray[np.intp]:
    """The fold of each record, [N], drawn at random: folds of about equal size offline, a single one online.

    Example:
        >>> np.bincount(record_folds(7, folds=3, seed=0))
        array([3, 2, 2])
    """
    count = 1 if mode == "online" else min(folds, max(records, 2))
    if records < count:
        raise InputError("records: 1 is too few, since a record is judged by a fit on other records; give 2 or more.")
    return np.asarray(generator(seed, "folds").permutation(records) % count)


def fit_sides(examples: Iterable[Example], folds: NDArray[np.intp]) -> SidesFit:
    """Least squares over all simulated targets; with several folds, a record's numbers come from the other folds.

    Rows are added one target at a time to one small triangular matrix per fold and side (QR), so that memory stays
    small and no digits are lost by squaring.

    Args:
        examples: one per simulated target.
        folds: [N] the fold of each record; a single fold is fitted on all records and judges them all.

    Example:
        >>> members = np.array([True, True, False, False])
        >>> example = Example(np.empty((4, 0)), np.array([[1.0], [3.0], [0.0], [-2.0]]), members)
        >>> fit = fit_sides([example], np.zeros(4, dtype=int))
        >>> fit.inside[0].coefficients.round(6), fit.outside[0].covariance.round(6)
        (array([[2.]]), array([[2.]]))
    """
    count = int(folds.max()) + 1
    triangles: dict[tuple[bool, int], FloatArray] = {}
    rows: dict[tuple[bool, int], int] = {}
    width = 0
    for signals, margins, members in examples:
        width = signals.shape[1] + 1
        whole = np.column_stack([np.ones(len(margins)), signals, margins])
        for side in (True, False):
            for fold in range(count):
                key = (side, fold)
                mine = whole[(members == side) & (folds == fold)]
                known = triangles.get(key, np.empty((0, whole.shape[1])))
                triangles[key] = np.asarray(np.linalg.qr(np.concatenate([known, mine]), mode="r"))
                rows[key] = rows.get(key, 0) + len(mine)
    made: dict[bool, list[LinearGaussian]] = {True: [], False: []}
    for side in (True, False):
        for fold in range(count):
            keys = [(side, other) for other in range(count) if other != fold or count == 1]
            made[side].append(_solved([triangles[key] for key in keys], sum(rows[key] for key in keys), width))
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
    floor = _SMALLEST_VARIANCE + _SMALLEST_SHARE * np.trace(covariance) / len(covariance)
    return LinearGaussian(coefficients=coefficients, covariance=covariance + floor * np.eye(len(covariance)))
