"""The figures of an attack: each described once in `FIGURES`, which every output reads, and the plain data behind."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError
from glasshouse.evaluation import AttackOutcome, Interval, Metrics, Rate
from glasshouse.evaluation.groups import GroupLeak
from glasshouse.evaluation.intervals import SamplingIntervals
from glasshouse.evaluation.metrics import ENOUGH_WRONG
from glasshouse.evaluation.pool_size import FewerReferences
from glasshouse.evaluation.thresholds import DISCOVERY_LEVEL, FlaggedRates, SimulatedFigures, Threshold, flagged_rates
from glasshouse.report.format import percent, rate, whole
from glasshouse.report.pictures.scores import Curve, Histogram, Reliability, curve_of, histogram_of, reliability_of

Place = Literal["table", "terminal", "html", "latex", "evidence", "sample", "mlflow", "gate"]
EVERYWHERE: tuple[Place, ...] = ("table", "terminal", "html", "latex", "evidence", "mlflow", "gate")


class Estimate(NamedTuple):
    """A value with its interval, if it has one; ``at`` is the first FPR that ties allow, if not the wanted one."""

    value: float
    interval: Interval | None = None
    at: float | None = None


class Counts(NamedTuple):
    """A share in words that need no abbreviation: a count of so many."""

    per: int
    subject: str  # what is counted
    says: str  # what the attack does; ``{}`` stands for the count


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of an attack. It has ``measure`` or ``read``.

    Args:
        name: its key in ``metrics.json`` and its column in tables; ``{}`` stands for the wanted false-positive rate.
        words: the heading of its column; ``{}`` stands for the rate in words.
        wanted: the rate, once the figure is one at a rate (`at`).
        unit: ``"%"``: a share, shown in percent.
        form: how a value is written, as Python's format.
        low: the smallest possible value.
        high: the largest.
        shown: where.
        counts: how it is told as a count, for readers who know no abbreviation; None if it cannot be.
        measure: the value from an outcome and the members [N] of the target; it is saved under ``name``. One that
            is not finite is left out.
        read: the value from what the report holds of the attack, at a rate; None if it has none.

    Example:
        >>> FIGURES["tpr@{}"].at(0.01).name, FIGURES["tpr@{}"].at(0.01).words
        ('tpr@0.01', 'TPR at 1 % FPR')
        >>> FIGURES["auc"].text(Estimate(0.7, Interval(0.6, 0.8)), "{value}{unit} [{low}, {high}]")
        '0.700 [0.600, 0.800]'
    """

    name: str
    words: str = ""
    wanted: float = math.nan
    unit: Literal["", "%"] = ""
    form: str = ".3f"
    low: float = 0.0
    high: float = 1.0
    shown: Sequence[Place] = EVERYWHERE
    counts: Counts | None = None
    measure: Callable[[AttackOutcome, BoolArray], Estimate] | None = None
    read: Callable[[AttackFigures, float], Estimate | None] | None = None

    def at(self, wanted: float) -> Figure:
        """The figure at one false-positive rate; itself if it has no rate."""
        if "{}" not in self.name:
            return self
        name, words = self.name.format(f"{wanted:g}"), self.words.format(rate(wanted))
        return dataclasses.replace(self, name=name, words=words, wanted=wanted)

    def of(self, attack: AttackFigures) -> Estimate | None:
        """The figure of an attack; None if it has none."""
        if self.read is not None:
            return self.read(attack, self.wanted)
        return None if attack.metrics is None else attack.metrics.figures.get(self.name)

    @property
    def heading(self) -> str:
        """The heading of a column whose cells have no unit."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    def number(self, value: float) -> str:
        """A value without its unit."""
        return f"{100 * value if self.unit == '%' else value:{self.form}}".replace(",", "\u00a0")

    def amount(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.number(value)} {self.unit}".rstrip()

    def text(self, found: Estimate | None, pattern: str, *, missing: str = "–") -> str:
        """An estimate as text; the pattern has the places ``value``, ``low``, ``high`` and ``unit``."""
        if found is None:
            return missing
        at = "" if found.at is None else f"at {percent(found.at)}: "
        low, high = (self.number(end) for end in found.interval or (found.value, found.value))
        shown = pattern if found.interval is not None else "{value}{unit}"
        unit = f" {self.unit}" if self.unit else ""
        return at + shown.format(value=self.number(found.value), low=low, high=high, unit=unit)


FIGURES: dict[str, Figure] = {}


def register_figure(figure: Figure) -> Figure:
    """Make a figure known: every table, page and check then has it.

    Example:
        >>> register_figure(FIGURES["auc"])
        Traceback (most recent call last):
        glasshouse.InputError: auc: there is a figure of this name already. Choose another name.
    """
    if figure.name in FIGURES:
        raise InputError(f"{figure.name}: there is a figure of this name already. Choose another name.")
    FIGURES[figure.name] = figure
    return figure


def columns_at(place: Place, attacks: Sequence[AttackFigures], fprs: Sequence[float]) -> list[Figure]:
    """The columns of figures at one place; but for the evidence file, those that no attack has are left out."""
    found: list[Figure] = []
    for rated, figures in itertools.groupby(FIGURES.values(), key=lambda figure: "{}" in figure.name):
        group = [figure for figure in figures if place in figure.shown]
        found += [figure.at(wanted) for wanted in (fprs if rated else [math.nan]) for figure in group]
    return [one for one in found if place == "evidence" or any(one.of(attack) is not None for attack in attacks)]


_LISTED = 20


@dataclass(frozen=True)
class RateFigure:
    """A true-positive rate at a wanted false-positive rate."""

    wanted: float  # the wanted false-positive rate
    fpr: float  # the largest achievable rate not above it; the first that any threshold reaches if not ``reached``
    tpr: float  # median-unbiased, at the true threshold of the wanted rate; the sample's rate if not ``reached``
    tpr_interval: Interval  # of the same
    allowed: int  # how many non-members may be flagged at the wanted rate: it rests on them
    chance: float  # the true-positive rate of scores without any meaning
    reached: bool = True  # False if ties leave no threshold that keeps the wanted rate: ``fpr`` is then above it

    @property
    def resolved(self) -> bool:
        """Whether it rests on enough non-members for a bare estimate."""
        return self.allowed >= ENOUGH_WRONG

    @property
    def strength(self) -> float:
        """Members identified per non-member that is flagged: it orders attacks that reach different rates."""
        return self.tpr / max(self.fpr, self.wanted)


@dataclass(frozen=True, kw_only=True)
class ThresholdFigure(Threshold):
    """A threshold from simulated targets, and how many records of this target it flags."""

    called: int  # records that it flags here
    correct: int | None  # how many of them are members; None if the members are not known
    false_alarms: float | None  # the share of non-members that it flags here; None if the members are not known


@dataclass(frozen=True)
class Measured:
    """How well an attack separates members from non-members: the measured figures of `FIGURES`, and its rates."""

    figures: Mapping[str, Estimate]
    confidence: float
    rates: tuple[RateFigure, ...]
    curve: Curve
    calibration: Reliability | None

    @property
    def auc(self) -> float:
        """The area under the ROC curve."""
        return self.figures["auc"].value

    @property
    def auc_interval(self) -> Interval:
        """Of the area; just its value where a figure has no interval."""
        return self.figures["auc"].interval or Interval(self.auc, self.auc)

    def rate_at(self, wanted: float) -> RateFigure | None:
        """The figure at a wanted false-positive rate; None if it was not measured."""
        return next((rate for rate in self.rates if rate.wanted == wanted), None)


@dataclass(frozen=True)
class AttackFigures:
    """One attack."""

    name: str  # in tables
    description: str  # the attack with its parameters, as Python writes it
    parameters: Mapping[str, Any]  # the same as plain data
    thresholds: tuple[ThresholdFigure, ...]  # one for each wanted rate, or none
    note: str  # why there are none
    details: Mapping[str, float | None]  # figures that only this attack has; None for one that is not a number
    histogram: Histogram  # of its scores
    queries_per_record: float | None  # None if queries were not counted
    queries: int | None  # in total
    metrics: Measured | None  # None if the members are not known
    seconds: float  # for scoring the target, with what is picked or learned on simulated targets; without thresholds
    knows_truth: bool = False  # it is given the members of the target: a limit for comparison, never the strongest
    simulated: SimulatedFigures | None = None  # strength on simulated targets; None if there are too few shadow models
    doubt: str = ""  # why its scores, which are meant as probabilities of membership, are not calibrated
    accusations: tuple[FlaggedRates, ...] = ()  # right and wrong flags by threshold; empty if members are not known
    listed: int | None = None  # records to flag with `DISCOVERY_LEVEL` of them wrong; None without simulated targets
    fewer: FewerReferences | None = None  # its strength with half of the references; None if that was not tried
    picked: str = ""  # the attack that `best` picked; empty for all others
    whole: SamplingIntervals | None = None  # for all records, if the audited ones are a random sample of them

    @property
    def first_flags(self) -> FlaggedRates | None:
        """Members and non-members above the threshold that decides records; None without one, or without members."""
        pairs = zip(self.accusations, self.thresholds, strict=bool(self.accusations))
        return next((flags for flags, threshold in pairs if not threshold.first), None)

    @property
    def title(self) -> str:
        """Its name, and what it picked."""
        return f"{self.name} (here {self.picked})" if self.picked else self.name


def attack_figures(name: str, outcome: AttackOutcome, members: BoolArray | None) -> AttackFigures:
    """The figures of one outcome."""
    queries, levels, cuts = outcome.queries, outcome.discovery_levels, outcome.thresholds
    flags = () if members is None else tuple(flagged_rates(one, outcome.flagged(one), members) for one in cuts)
    return AttackFigures(
        name=name,
        description=re.sub(r" at 0x[0-9a-f]+", "", repr(outcome.attack)),  # an address differs from run to run
        parameters=_parameters(outcome.attack),
        thresholds=tuple(_threshold(outcome, one, members) for one in cuts),
        details={key: value if np.isfinite(value) else None for key, value in outcome.details.items()},
        histogram=histogram_of(outcome.scores, members, posterior=outcome.attack.posterior),
        queries_per_record=None if queries is None else queries.per_record,
        queries=None if queries is None else queries.total(len(outcome.scores)),
        metrics=None if outcome.metrics is None or members is None else _measured(outcome, outcome.metrics, members),
        knows_truth=outcome.attack.knows_truth,
        accusations=flags,
        listed=None if levels is None else int((levels <= DISCOVERY_LEVEL).sum()),
        whole=outcome.sampling_intervals,
        **{name: getattr(outcome, name) for name in ("note", "seconds", "simulated", "doubt", "fewer", "picked")},
    )


def _measured(outcome: AttackOutcome, metrics: Metrics, members: BoolArray) -> Measured:
    level = metrics.confidence
    found = {name: one.measure(outcome, members) for name, one in FIGURES.items() if one.measure is not None}
    return Measured(
        figures={name: estimate for name, estimate in found.items() if math.isfinite(estimate.value)},
        confidence=level,
        rates=tuple(rate_figure(rate) for rate in metrics.rates),
        curve=curve_of(metrics.curve, confidence=level),
        calibration=reliability_of(outcome.scores, members, confidence=level) if outcome.calibrated else None,
    )


def rate_figure(rate: Rate) -> RateFigure:
    """A rate as the report shows it: the first that can be reached, instead of a 0 that was not measured."""
    if rate.first is None:
        return RateFigure(rate.wanted, rate.fpr, rate.estimate, rate.interval, rate.allowed, rate.wanted)
    first = rate.first
    return RateFigure(rate.wanted, first.fpr, first.tpr, first.interval, rate.allowed, first.fpr, reached=False)


def _threshold(outcome: AttackOutcome, threshold: Threshold, members: BoolArray | None) -> ThresholdFigure:
    who = outcome.flagged(threshold)
    return ThresholdFigure(
        **vars(threshold),
        called=int(who.sum()),
        correct=None if members is None else int((who & members).sum()),
        false_alarms=None if members is None else float(who[~members].mean()),
    )


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


def _rate(attack: AttackFigures, wanted: float) -> Estimate | None:
    found = None if attack.metrics is None else attack.metrics.rate_at(wanted)
    return None if found is None else Estimate(found.tpr, found.tpr_interval, None if found.reached else found.fpr)


def _first(attack: AttackFigures, figure: Literal["fpr", "tpr"]) -> Estimate | None:
    """Of the first rate that can be reached, where ties leave a wanted one out of reach."""
    rates = attack.metrics.rates if attack.metrics is not None else ()
    return next((Estimate(getattr(one, figure)) for one in rates if not one.reached), None)


def _estimated(attack: AttackFigures, wanted: float) -> Estimate | None:
    """Of all records, from a sample of them."""
    rates = attack.whole.rates if attack.whole is not None else ()
    return next((Estimate(one.tpr, one.interval) for one in rates if one.wanted == wanted), None)


def _at_threshold(name: str, of: Literal["thresholds", "accusations"]) -> Callable[..., Estimate | None]:
    def read(attack: AttackFigures, wanted: float) -> Estimate | None:
        return next((Estimate(getattr(one, name)) for one in getattr(attack, of) if one.wanted == wanted), None)

    return read


def _plain(name: str) -> Callable[..., Estimate | None]:
    return lambda attack, _: None if (value := getattr(attack, name)) is None else Estimate(value)


def group_estimate(group: GroupLeak, figure: str) -> Estimate | None:
    """The ``"auc"`` or ``"tpr"`` of a group of records; None if it was not measured."""
    value, interval = (group.auc, group.auc_interval) if figure == "auc" else (group.tpr, group.tpr_interval)
    return None if value is None or interval is None else Estimate(value, interval)


def _metric(name: str) -> Callable[..., Estimate]:
    return lambda outcome, _: Estimate(*(getattr(outcome.metrics, one) for one in (name, f"{name}_interval")))


_MEMBERS = Counts(1000, "members identified", f"identifies {{}} of {whole(1000)} members")
_A_PAIR = "pairs of a member and a non-member"
_PAIRS = Counts(100, f"{_A_PAIR} told apart", f"is right about {{}} of 100 {_A_PAIR}")
_share = functools.partial(Figure, unit="%", form=".1f")
_number = functools.partial(Figure, high=math.inf)
for _figure in (
    Figure(name="auc", words="AUC", counts=_PAIRS, measure=_metric("auc")),
    _share(
        name="balanced_accuracy",
        words="balanced accuracy",
        shown=("table", "html"),
        measure=_metric("balanced_accuracy"),
    ),
    Figure(
        name="auc_whole",
        words="AUC",
        shown=("table", "sample"),
        read=lambda attack, _: None if attack.whole is None else Estimate(attack.whole.auc, attack.whole.auc_interval),
    ),
    _share(name="tpr@{}", words="TPR at {} FPR", counts=_MEMBERS, read=_rate),
    _share(name="tpr@{}_whole", words="TPR at {} FPR", shown=("table", "sample"), read=_estimated),
    Figure(name="first_fpr", shown=("table",), read=lambda attack, _: _first(attack, "fpr")),
    Figure(name="tpr@first_fpr", shown=("table",), read=lambda attack, _: _first(attack, "tpr")),
    _number(name="threshold@{}", low=-math.inf, shown=("table",), read=_at_threshold("value", "thresholds")),
    _number(
        name="flagged@{}",
        words="flagged at {} FPR",
        form=",.0f",
        shown=("table", "terminal"),
        read=_at_threshold("called", "thresholds"),
    ),
    Figure(name="advantage@{}", low=-1.0, shown=("table",), read=_at_threshold("advantage", "accusations")),
    _number(name=f"flagged@fdr{DISCOVERY_LEVEL:g}", shown=("table",), read=_plain("listed")),
    _number(name="seconds", words="seconds", form=".2f", shown=("table", "html"), read=_plain("seconds")),
    _number(
        name="queries_per_record",
        words="queries per record",
        form=".6g",
        shown=("html",),
        read=_plain("queries_per_record"),
    ),
    _number(name="queries", words="queries in total", form=",.0f", shown=("html",), read=_plain("queries")),
):
    register_figure(_figure)
