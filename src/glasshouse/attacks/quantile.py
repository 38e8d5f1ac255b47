"""Quantile regression: which quantile of a non-member's margin the target reaches (after Bertran et al., 2023).

Non-members are out-models of shadow pools, or public records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.linear_model import RidgeCV

from glasshouse.attacks.attack import Attack, QueryCount, register
from glasshouse.attacks.in_out_moments import Moments, MomentsAttack, SimulatedSides, moments, simulated_moments
from glasshouse.core.arrays import FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.randomness import generator
from glasshouse.evidence import Evidence, Mode

_LEVELS = (0.5, 0.75, 0.9, 0.95, 0.99)
_EXAMPLES = 20_000  # answers to learn from, at most; more change a line with a dozen numbers little
_FAR = 10.0  # interquartile ranges beyond the quartiles; a loss of 1e300 that is not clipped there moves every line
_WIDTHS = (0.5, 0.1, 0.02)  # of the smoothing, in units of the residuals' spread; each starts at the one before
_STEPS = 25
_RIDGE = 1e-9  # of the curvature; a class without answers has none of its own
_NARROWEST = 1e-9  # between two quantiles


class QuantileFit(NamedTuple):
    """Lines that predict quantiles of a non-member's margin, and the out-means that are told apart."""

    lines: FloatArray  # [levels, 3 + classes - 1] of 1, the out-mean, its square and each class but the first
    low: float  # the smallest out-mean
    high: float  # the largest


@register("quantile")
@dataclass(frozen=True, kw_only=True)
class QuantileRegression(MomentsAttack):
    """How far up the margin lies among the margins that non-members like it have, in units of a normal distribution.

    The 50, 75, 90, 95 and 99 % quantiles of a non-member's margin are regressed on its label and on the mean margin of
    its out-models, linear and squared, over the non-members of all simulated targets. Between two quantiles, and
    beyond them, the score is linear. No in-model of any record is asked, so there is no online form.

    In the paper a network learns the quantiles from the record itself, on records that the target did not train on.
    Evidence has losses and no features, so here label and out-models describe a record, and the non-members are those
    of simulated targets. Where a model is only right or wrong, as a full tree, it is weaker than the loss threshold.

    Args:
        seed: seed of the draw of the answers that it learns from, if there are very many.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.repeat(np.tile([[1, 0], [0, 1]], (3, 1)), 50, axis=1).astype(bool)  # [6, 100]
        >>> loss = np.logaddexp(0.0, rng.normal(size=(6, 100)) - 3.0 * members)
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss[2:], shadow_members=members[2:])
        >>> scores = QuantileRegression().score(evidence)  # the first fifty trained the target
        >>> bool(scores[:50].mean() > 2), bool(abs(scores[50:].mean()) < 0.5)
        (True, True)
    """

    version: ClassVar[int] = 2
    mode: ClassVar[Mode] = "offline"  # type: ignore[misc]

    seed: int = 0

    def _of_target(self, fit: QuantileFit, evidence: Evidence) -> FloatArray:
        evidence.require_side(inside=False)
        side = moments(loss_to_margin(evidence.shadow_loss), ~evidence.shadow_members)
        return self._scores(fit, evidence, loss_to_margin(evidence.target_loss), [side])

    def _simulated(self, evidence: Evidence) -> Iterator[SimulatedSides]:
        """For a regression too, of margins of the losses."""
        return simulated_moments(evidence, [False], statistic=loss_to_margin(evidence.shadow_loss))

    def _scores(
        self, fit: QuantileFit, evidence: Evidence, margins: FloatArray, sides: Sequence[Moments]
    ) -> FloatArray:
        """Normal quantiles."""
        usual = np.clip(sides[0].mean, fit.low, fit.high)
        expected = fit.lines @ _signals(usual, evidence.labels, fit.lines.shape[1]).T
        # lines may cross; a quantile of a higher level is never below
        steps = np.maximum(np.diff(np.maximum.accumulate(expected, axis=0), axis=0), _NARROWEST)
        quantiles = np.concatenate([expected[:1], expected[0] + np.cumsum(steps, axis=0)])  # [levels, N]
        normal, records = ndtri(_LEVELS), np.arange(evidence.records)
        below = np.clip((margins > quantiles).sum(axis=0) - 1, 0, len(_LEVELS) - 2)  # the quantile to start from
        slope = np.diff(normal)[below] / steps[below, records]
        return np.asarray(normal[below] + slope * (margins - quantiles[below, records]))

    def _learned(self, evidence: Evidence) -> QuantileFit:
        parts = []
        for target in self._simulated(evidence):
            outside = np.flatnonzero(~target.members)
            parts.append((target.sides[0].mean[outside], target.statistic[outside], outside))
        usual, margins, records = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(usual) > _EXAMPLES:
            drawn = generator(self.seed, "examples").permutation(len(usual))[:_EXAMPLES]
            usual, margins, records = usual[drawn], margins[drawn], records[drawn]
        (low, high), labels = usual_range(usual), evidence.labels
        columns = 3 if labels is None else int(labels.max(initial=0)) + 3
        signals = _signals(np.clip(usual, low, high), None if labels is None else labels[records], columns)
        margins = np.clip(margins, *usual_range(margins))
        return QuantileFit(np.stack([quantile_line(signals, margins, level) for level in _LEVELS]), low, high)


def quantile_line(signals: FloatArray, answers: FloatArray, level: float) -> FloatArray:
    """Coefficients [F] of the line that a share ``level`` of the answers [R] lies below, given signals [R, F].

    The pinball loss is slightly smoothed so that Newton's steps are possible (Fernandes, Guerre and Horta 2021).
    """
    coefficients = np.linalg.lstsq(signals, answers, rcond=None)[0]
    residuals = answers - signals @ coefficients
    spread = float(residuals.std()) + 1e-12
    for width in _WIDTHS:
        scale = width * spread
        loss = _smoothed(residuals, level, scale)
        for _ in range(_STEPS):
            gradient = signals.T @ (ndtr(-residuals / scale) - level)
            curvature = np.exp(-0.5 * (residuals / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
            hessian = (signals * curvature[:, None]).T @ signals
            ridge = _RIDGE * np.trace(hessian) + 1e-12
            step = np.linalg.solve(hessian + ridge * np.eye(len(hessian)), gradient)
            moved = signals @ step
            for size in 0.5 ** np.arange(20):  # the loss must fall
                trial = _smoothed(residuals + size * moved, level, scale)
                if trial < loss:
                    break
            else:
                break
            gained, loss = loss - trial, trial
            coefficients, residuals = coefficients - size * step, residuals + size * moved
            if gained < 1e-10 * abs(loss):
                break
    return np.asarray(coefficients)


def usual_range(values: FloatArray) -> tuple[float, float]:
    """The quartiles of values, widened so far that only losses such as 1e300 lie beyond."""
    first, third = np.quantile(values, [0.25, 0.75])
    return float(first - _FAR * (1 + third - first)), float(third + _FAR * (1 + third - first))


def _smoothed(residuals: FloatArray, level: float, scale: float) -> float:
    """Pinball loss of residuals [R], averaged over normal noise of this scale."""
    units = residuals / scale
    density = np.exp(-0.5 * units**2) / np.sqrt(2 * np.pi)
    return float((residuals * (level - ndtr(-units)) + scale * density).sum())


def _signals(usual: FloatArray, labels: IntArray | None, columns: int) -> FloatArray:
    """1, the out-mean [R], its square, and one column for each class but the first: [R, columns]."""
    made = np.zeros((len(usual), columns))
    made[:, 0], made[:, 1], made[:, 2] = 1.0, usual, usual**2
    if labels is not None:
        at = np.flatnonzero((labels > 0) & (labels + 2 < columns))
        made[at, labels[at] + 2] = 1.0
    return made


_PUBLIC_EXAMPLES = 10_000  # public records to learn from, at most
_COLUMNS = 1024  # of features times classes, at most
_STRENGTHS = tuple(np.logspace(0, 5, 11).tolist())  # of the ridge; the best by leaving out one record
_SMALL = 1e-3  # margins closer than this to what was expected are equally close


@register("public-quantile")
@dataclass(frozen=True, kw_only=True)
class PublicQuantile(Attack):
    """The target's margin in units of the spread that public records with such features and label have.

    As in Bertran et al. (2023), public records alone are learned from: two ridge regressions predict the mean and the
    logarithm of the spread of the margin, each with its own slopes per class. No shadow model is asked.

    Args:
        seed: of the draw of public records, if there are very many.

    Example:
        >>> from glasshouse.evidence.evidence import PublicRecords
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(300, 1))  # how difficult a record is
        >>> loss = np.logaddexp(0, 3 * x[:, 0] + 0.3 * rng.normal(size=300) - 2 * (np.arange(300) < 100))
        >>> public = PublicRecords(loss=loss[200:], labels=np.zeros(100, dtype=np.int64), features=x[200:],
        ...                        audited=x[:200])
        >>> scores = PublicQuantile().score(Evidence(target_loss=loss[:200], labels=np.zeros(200), public=public))
        >>> bool(scores[:100].min() > scores[100:].max())  # the first hundred are members
        True
    """

    needs_public: ClassVar[bool] = True
    needs_classes: ClassVar[str] = "it learns class by class"
    least_models: ClassVar[int] = 0

    seed: int = 0

    def score(self, evidence: Evidence) -> FloatArray:
        """Standardised margins, [N]; higher means member."""
        public = evidence.public
        if public is None or evidence.labels is None:
            raise InputError(
                "public-quantile: it needs records that are known not to have trained the target: pass public=mask, or "
                "public=0.3 to set some of the non-members aside."
            )
        rows = generator(self.seed, "public").permutation(len(public))[:_PUBLIC_EXAMPLES]
        low, high = usual_range(loss_to_margin(public.loss))
        answers = np.clip(loss_to_margin(public.loss[rows]), low, high)
        classes = int(max(public.labels.max(), evidence.labels.max())) + 1
        columns = _components(np.concatenate([public.features[rows], public.audited]), max(1, _COLUMNS // classes))
        known = _by_class(columns[: len(rows)], public.labels[rows], classes)
        asked = _by_class(columns[len(rows) :], evidence.labels, classes)
        expected, misses = _predicted(known, answers, asked)
        logs, _ = _predicted(known, np.log(misses + _SMALL), asked)
        margins = np.clip(loss_to_margin(evidence.target_loss), low, high)
        return np.asarray((margins - expected) / np.exp(logs))

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target alone: once per record, and once for every public record."""
        return QueryCount(1.0, 0 if evidence.public is None else len(evidence.public))


def _predicted(known: FloatArray, answers: FloatArray, asked: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predictions [N] for the asked rows, and how far each known row [P] is from its own when it is left out."""
    fitted = RidgeCV(_STRENGTHS, store_cv_results=True).fit(known, answers)
    return fitted.predict(asked), np.sqrt(fitted.cv_results_[:, _STRENGTHS.index(fitted.alpha_)])


def _components(features: FloatArray, most: int) -> FloatArray:
    """[R, at most ``most``] standardised columns, or their principal components where there are more."""
    spread = features.std(axis=0)
    values = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if values.shape[1] <= most:
        return np.asarray(values)
    _, vectors = np.linalg.eigh(values.T @ values)
    parts = values @ vectors[:, ::-1][:, :most]
    return np.asarray(parts / np.maximum(parts.std(axis=0), 1e-12))


def _by_class(columns: FloatArray, labels: IntArray, classes: int) -> FloatArray:
    """[R, C + F + C F] the class, the columns, and the columns in the place of their class."""
    own = np.eye(classes)[labels]
    crossed = (own[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
    return np.concatenate([own, columns, crossed], axis=1)
