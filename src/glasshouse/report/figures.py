"""The figures of one attack in a report: rates, a drawn ROC, histograms and calibration; plain data, no scores."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import ROC, AttackOutcome, Interval, Metrics, Rate, clopper_pearson, tpr_intervals
from glasshouse.evaluation.checks.calibration import binned, calibration_floor
from glasshouse.evaluation.intervals import SamplingIntervals
from glasshouse.evaluation.pool_size import FewerReferences
from glasshouse.evaluation.precision import DISCOVERY_LEVEL, FlaggedRates, flagged_rates
from glasshouse.evaluation.thresholds import SimulatedFigures

_POINTS = 160
_COARSE = {"nodes": 21, "halvings": 13}  # enough for a picture


@dataclass(frozen=True)
class Curve:
    """Points of a ROC, FPR rising, each with the interval of the TPR at its FPR, point by point.

    Args:
        fpr: [P] false-positive rates.
        tpr: [P] true-positive rates.
        low: [P] lower ends of the TPR's intervals, each point by itself.
        high: [P] upper ends.
        members: how many members were scored.
        non_members: how many others; one over this number is the smallest rate that can be measured.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    members: int
    non_members: int


def curve_of(roc: ROC, *, confidence: float = 0.95) -> Curve:
    """At most ``points`` points, evenly spread over the logarithm of the FPR.

    At each grid rate it keeps the largest achievable FPR not above it, so nothing is interpolated. Between two kept
    points the true curve is at or above the step that is drawn.

    Example:
        >>> from glasshouse.evaluation import roc
        >>> curve_of(roc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])).tpr
        (0.5, 1.0, 1.0)
    """
    outside = roc.non_members
    grid = np.unique(np.rint(np.geomspace(1, outside, _POINTS - 1)).astype(np.int64))
    counts = np.rint(roc.fpr * outside).astype(np.int64)
    kept = np.unique(np.searchsorted(counts, np.concatenate([[0], grid]), side="right") - 1)
    # the true rate behind a count of 0 is not 0: half a non-member stands for it
    bands = tpr_intervals(roc, np.clip(counts[kept], 0.5, outside - 0.5) / outside, confidence=confidence, **_COARSE)
    return Curve(
        fpr=tuple(roc.fpr[kept].tolist()),
        tpr=tuple(roc.tpr[kept].tolist()),
        low=tuple(band.low for band in bands),
        high=tuple(band.high for band in bands),
        members=roc.members,
        non_members=outside,
    )


_BINS = 40
_TAIL = 0.005


@dataclass(frozen=True)
class Histogram:
    """Counts of scores in bins of equal width; scores outside count in the first and the last bin.

    Args:
        edges: [B + 1].
        members: [B] how many members; how many records if the members are not known.
        others: [B] how many others; None if the members are not known.
        cut: how many scores are outside the edges.
    """

    edges: tuple[float, ...]
    members: tuple[int, ...]
    others: tuple[int, ...] | None
    cut: int


def histogram_of(scores: FloatArray, members: BoolArray | None, *, posterior: bool = False) -> Histogram:
    """Counts of scores [N]; the bins cover [0, 1] for a probability, else all but the farthest scores on each side.

    Example:
        >>> found = histogram_of(np.array([0.1, 0.9, 0.9]), np.array([False, True, True]), posterior=True)
        >>> sum(found.members), sum(found.others), found.edges[-1]
        (2, 1, 1.0)
    """
    low, high = (0.0, 1.0) if posterior else (float(np.quantile(scores, q)) for q in (_TAIL, 1 - _TAIL))
    if not high > low:  # all scores are equal
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    inside = np.clip(scores, low, high)
    parts = [inside] if members is None else [inside[members], inside[~members]]
    counts = [tuple(np.histogram(part, edges)[0].tolist()) for part in parts]
    return Histogram(
        edges=tuple(edges.tolist()),
        members=counts[0],
        others=None if members is None else counts[1],
        cut=int((inside != scores).sum()),
    )


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: records in bins of their posterior.

    Args:
        said: mean posterior of each bin that holds a record.
        found: share of members in it.
        intervals: Clopper-Pearson intervals of the share.
        counts: records in it.
        error: expected calibration error: the mean of |said - found| over records.
        floor: the error that chance alone gives, even if every posterior is exactly right.
    """

    said: tuple[float, ...]
    found: tuple[float, ...]
    intervals: tuple[Interval, ...]
    counts: tuple[int, ...]
    error: float
    floor: float


def reliability_of(posteriors: FloatArray, members: BoolArray, *, confidence: float = 0.95) -> Reliability:
    """Compare posteriors [N] with true membership [N], in ten bins of equal width.

    Example:
        >>> found = reliability_of(np.array([0.2, 0.2, 0.8, 0.8]), np.array([0, 0, 1, 0], dtype=bool))
        >>> found.found, round(found.error, 3)
        ((0.0, 0.5), 0.25)
    """
    bins = binned(posteriors, members)
    counts = np.rint(bins.mass * len(posteriors)).astype(np.int64)
    hits = np.rint(bins.found * counts).astype(np.int64)
    return Reliability(
        said=tuple(bins.said.tolist()),
        found=tuple(bins.found.tolist()),
        intervals=tuple(
            clopper_pearson(int(hit), int(count), confidence=confidence)
            for hit, count in zip(hits, counts, strict=True)
        ),
        counts=tuple(counts.tolist()),
        error=bins.error,
        floor=calibration_floor(posteriors),
    )


_LISTED = 20


@dataclass(frozen=True)
class RateFigure:
    """A true-positive rate at a wanted false-positive rate.

    Args:
        wanted: the wanted false-positive rate.
        fpr: the largest achievable rate not above it; the first that any threshold reaches if ``reached`` is False.
        tpr: the median-unbiased estimate of the true-positive rate at the true threshold of the wanted rate; the
            sample's rate at ``fpr`` if ``reached`` is False.
        tpr_interval: of the same.
        allowed: how many non-members may be wrongly accused at the wanted rate: it rests on them.
        chance: the true-positive rate of scores without any meaning.
        reached: False if no threshold keeps the wanted rate, because scores are tied: ``fpr`` is then above it.
    """

    wanted: float
    fpr: float
    tpr: float
    tpr_interval: Interval
    allowed: int
    chance: float
    reached: bool = True

    @property
    def strength(self) -> float:
        """Members found per non-member that may be accused: it orders attacks that reach different rates."""
        return self.tpr / max(self.fpr, self.wanted)


@dataclass(frozen=True)
class ThresholdFigure:
    """A threshold from simulated targets, and how many records of this target it flags.

    Args:
        wanted: the wanted false-positive rate.
        value: records with at least this score are called members.
        policy: how it was taken from the simulated targets' thresholds.
        expected_fpr: mean rate over simulated targets.
        interval: where the rate on one more target is expected.
        simulated: how many targets were simulated.
        first: whether it is for the first rate that can be reached, since no wanted rate can, because of ties.
        called: records that it calls members here.
        correct: how many of them are members; None if the members are not known.
        false_alarms: the share of non-members that it calls members here; None if the members are not known.
    """

    wanted: float
    value: float
    policy: str
    expected_fpr: float
    interval: Interval
    simulated: int
    first: bool
    called: int
    correct: int | None
    false_alarms: float | None


@dataclass(frozen=True)
class Measured:
    """How well an attack separates members from others, if the members are known."""

    auc: float
    auc_interval: Interval
    balanced_accuracy: float
    balanced_accuracy_interval: Interval
    confidence: float
    rates: tuple[RateFigure, ...]
    curve: Curve
    calibration: Reliability | None

    def rate_at(self, wanted: float) -> RateFigure | None:
        """The figure at a wanted false-positive rate; None if it was not measured."""
        return next((rate for rate in self.rates if rate.wanted == wanted), None)


@dataclass(frozen=True)
class AttackFigures:
    """One attack.

    Args:
        name: in tables.
        description: the attack with its parameters, as Python writes it.
        parameters: the same as plain data.
        thresholds: one for each wanted rate, or none.
        note: why there are none.
        details: figures that only this attack has; None for one that is not a number.
        histogram: of its scores.
        queries_per_record: queries for one record; None if they were not counted.
        queries: in total.
        metrics: None if the members are not known.
        seconds: spent on scoring the target, including what is picked, tuned or learned on simulated targets before;
            thresholds are not counted.
        knows_truth: whether it is given the members of the target: a limit for comparison, never the strongest attack.
        simulated: how strong it is on simulated targets; None if there are too few shadow models.
        doubt: why its scores, which are meant as probabilities of membership, cannot be believed; mostly empty.
        accusations: what each threshold finds and whom it accuses wrongly; empty if the members are not known.
        listed: records that can be called members with at most `DISCOVERY_LEVEL` of them wrong; None without simulated
            targets.
        fewer: its strength with half of the references; None if that was not tried.
        picked: the attack that `best` picked; empty for all others.
        whole: estimates for all records, if the audited ones are a random sample of them.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    thresholds: tuple[ThresholdFigure, ...]
    note: str
    details: Mapping[str, float | None]
    histogram: Histogram
    queries_per_record: float | None
    queries: int | None
    metrics: Measured | None
    seconds: float
    knows_truth: bool = False
    simulated: SimulatedFigures | None = None
    doubt: str = ""
    accusations: tuple[FlaggedRates, ...] = ()
    listed: int | None = None
    fewer: FewerReferences | None = None
    picked: str = ""
    whole: SamplingIntervals | None = None

    @property
    def title(self) -> str:
        """Its name, and what it picked."""
        return f"{self.name} (here {self.picked})" if self.picked else self.name


def attack_figures(name: str, outcome: AttackOutcome, members: BoolArray | None) -> AttackFigures:
    """The figures of one outcome.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> outcome = AttackOutcome(LossThreshold(), np.array([3.0, 1.0]), (), None, 0.0)
        >>> attack_figures("loss", outcome, None).description
        'LossThreshold()'
    """
    queries, levels = outcome.queries, outcome.discovery_levels
    return AttackFigures(
        name=name,
        description=re.sub(r" at 0x[0-9a-f]+", "", repr(outcome.attack)),  # an address differs from run to run
        parameters=_parameters(outcome.attack),
        thresholds=_thresholds(outcome, members),
        note=outcome.note,
        details={key: value if np.isfinite(value) else None for key, value in outcome.details.items()},
        histogram=histogram_of(outcome.scores, members, posterior=outcome.attack.posterior),
        queries_per_record=None if queries is None else queries.per_record,
        queries=None if queries is None else queries.total(len(outcome.scores)),
        metrics=None if outcome.metrics is None else _measured(outcome, outcome.metrics, members),
        seconds=outcome.seconds,
        knows_truth=outcome.attack.knows_truth,
        simulated=outcome.simulated,
        doubt=outcome.doubt,
        accusations=(
            ()
            if members is None
            else tuple(flagged_rates(cut, outcome.flagged(cut), members) for cut in outcome.thresholds)
        ),
        listed=None if levels is None else int((levels <= DISCOVERY_LEVEL).sum()),
        fewer=outcome.fewer,
        picked=outcome.picked,
        whole=outcome.sampling_intervals,
    )


def _measured(outcome: AttackOutcome, metrics: Metrics, members: BoolArray | None) -> Measured:
    level = metrics.confidence
    return Measured(
        auc=metrics.auc,
        auc_interval=metrics.auc_interval,
        balanced_accuracy=metrics.balanced_accuracy,
        balanced_accuracy_interval=metrics.balanced_accuracy_interval,
        confidence=level,
        rates=tuple(rate_figure(rate) for rate in metrics.rates),
        curve=curve_of(metrics.curve, confidence=level),
        calibration=(
            reliability_of(outcome.scores, members, confidence=level)
            if outcome.calibrated and members is not None
            else None
        ),
    )


def rate_figure(rate: Rate) -> RateFigure:
    """A rate as the report shows it: the first that can be reached, instead of a 0 that was not measured."""
    if rate.first is None:
        return RateFigure(rate.wanted, rate.fpr, rate.estimate, rate.interval, rate.allowed, rate.wanted)
    first = rate.first
    return RateFigure(rate.wanted, first.fpr, first.tpr, first.interval, rate.allowed, first.fpr, reached=False)


def _thresholds(outcome: AttackOutcome, members: BoolArray | None) -> tuple[ThresholdFigure, ...]:
    found = []
    for threshold in outcome.thresholds:
        who = outcome.flagged(threshold)
        found.append(
            ThresholdFigure(
                **{field.name: getattr(threshold, field.name) for field in dataclasses.fields(threshold)},
                called=int(who.sum()),
                correct=None if members is None else int((who & members).sum()),
                false_alarms=None if members is None else float(who[~members].mean()),
            )
        )
    return tuple(found)


def _parameters(attack: Any) -> dict[str, Any]:
    """Fields as JSON types; a callable, such as a user's sampler, by its name; many numbers by their count."""
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(attack):
        if field.name.endswith("_"):  # learned, not chosen
            continue
        value = getattr(attack, field.name)
        if dataclasses.is_dataclass(value):
            value = repr(value)
        elif callable(value):
            value = getattr(value, "__name__", type(value).__name__)
        elif np.size(value) > _LISTED:
            value = f"{np.size(value)} numbers"
        plain[field.name] = value if isinstance(value, str) else np.asarray(value).tolist()
    return plain
