"""The risk of each unit: how often simulated targets that trained on it let an attack identify it, beside chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.evaluation.roc import SortedScores, checked
from glasshouse.evaluation.thresholds import Scored

_BINS = 10
_CLEARLY = 3.0  # standard deviations by which more units are identified nearly always than if all were alike


@dataclass(frozen=True, kw_only=True)
class RiskFigures:
    """How unequal the risk of units is, as plain data."""

    attack: str  # which identifies
    fpr: float  # at this share of flagged non-members
    units: int  # how many units
    targets: float  # in how many simulated targets a unit was inside, on average
    share: float  # of units identified, on average over these targets
    always: int  # units that are identified in nine of ten of their targets or more
    always_alike: float  # how many that would be if all units had the same risk
    always_chance: float  # and if the attack guessed
    observed: tuple[int, ...]  # units by the share of their targets that identify them, in ten bins
    alike: tuple[float, ...]  # the same if all units had the same risk
    guessed: tuple[float, ...]  # the same if the attack guessed

    def __post_init__(self) -> None:
        """A file may say anything."""
        if {len(self.observed), len(self.alike), len(self.guessed)} != {_BINS} or self.units < 1:
            raise ValueError(f"risk: give {_BINS} bins of one unit or more.")

    @property
    def hidden(self) -> bool:
        """Whether the average hides units that are identified nearly always."""
        return bool(self.always - self.always_alike > _CLEARLY * np.sqrt(max(self.always_alike, 1.0)))

    def sentence(self, unit: str) -> str:
        """For page one."""
        average = (
            f"On average {100 * self.share:.0f} % of the {unit}s that trained a simulated target are identified "
            f"({self.attack}, {100 * self.fpr:g} % of non-members flagged)"
        )
        if not self.hidden:
            return f"{average}, and no {unit}s stand out: the risk is as even as chance makes it."
        one_in = max(1, round(self.units / max(1, self.always)))
        who = f"1 in {one_in} {unit}s" if one_in > 1 else f"nearly all {unit}s"
        return (
            f"{average}. The average hides {who} ({self.always} of {self.units}) who are identified nearly always; if "
            f"all had the same risk, that would be {self.always_alike:.0f}, and by guessing {self.always_chance:.0f}."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitRisk:
    """How often each unit is identified.

    Example:
        >>> members = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
        >>> scores = np.array([[9.0, 0.0, 1.0, 2.0], [3.0, 4.0, 9.0, 9.0]])
        >>> found = unit_risk({"base": list(zip(scores, members))}, attack="base", fpr=0.1)
        >>> found.identified
        array([1., 0., 1., 1.])
    """

    attack: str  # of the figures
    fpr: float
    times: IntArray  # [U] simulated targets that trained on each unit
    hits: Mapping[str, IntArray]  # by attack, [U] in how many of them it identifies the unit

    @property
    def identified(self) -> FloatArray:
        """[U] the share of the targets in which a unit is identified; NaN for one that was never inside."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.hits[self.attack] / self.times)

    @property
    def by(self) -> TextArray:
        """[U] which attack identifies each unit most often; the one of the figures among equals."""
        names = [self.attack, *(name for name in self.hits if name != self.attack)]
        return np.asarray(np.array(names)[np.argmax([self.hits[name] for name in names], axis=0)])

    @property
    def chance(self) -> FloatArray:
        """[U] the chance that guessing identifies a unit as often as its best attack, corrected for all attacks."""
        most = np.max(list(self.hits.values()), axis=0)
        return np.asarray(np.minimum(1.0, len(self.hits) * binom.sf(most - 1, self.times, self.fpr)))

    def figures(self) -> RiskFigures:
        """How unequal the risk is."""
        inside = self.times > 0
        times, hits = self.times[inside], self.hits[self.attack][inside]
        share = float(hits.sum() / times.sum())
        observed = np.bincount(_bins(hits, times), minlength=_BINS)
        alike, chance = (_expected(times, rate) for rate in (share, self.fpr))
        return RiskFigures(
            attack=self.attack,
            fpr=self.fpr,
            units=int(inside.sum()),
            targets=float(times.mean()),
            share=share,
            always=int(observed[-1]),
            always_alike=float(alike[-1]),
            always_chance=float(chance[-1]),
            observed=tuple(observed.tolist()),
            alike=tuple(alike.tolist()),
            guessed=tuple(chance.tolist()),
        )

    def of_units(self, places: IntArray) -> UnitRisk:
        """The same for units in another order."""
        hits = {name: values[places] for name, values in self.hits.items()}
        return UnitRisk(attack=self.attack, fpr=self.fpr, times=self.times[places], hits=hits)


def unit_risk(scored: Mapping[str, Scored], *, attack: str, fpr: float) -> UnitRisk:
    """How often each unit [U] is identified by each attack.

    Every simulated target has its own threshold, by its own non-members; the target under audit is not looked at.

    Args:
        scored: scores and members [U] of every simulated target, by attack.
        attack: whose figures a report shows.
        fpr: the share of non-members that may be flagged.
    """
    if attack not in scored:
        raise InputError(f"attack: {attack!r} was not tried on simulated targets.")
    hits = {name: np.sum([_identified(*pair, fpr) for pair in pairs], axis=0) for name, pairs in scored.items()}
    times = np.sum([members for _, members in scored[attack]], axis=0)
    return UnitRisk(attack=attack, fpr=fpr, times=times, hits=hits)


def _identified(scores: FloatArray, members: BoolArray, fpr: float) -> IntArray:
    values, mask = checked(scores, members)
    return np.asarray(mask & (values >= SortedScores.of(values, mask).cut_at(fpr)), dtype=np.int64)


def _bins(hits: IntArray, times: IntArray) -> IntArray:
    """[n] the bin of each share; the last one is nine of ten and more."""
    return np.asarray(np.minimum((hits * _BINS) // times, _BINS - 1))


def _expected(times: IntArray, rate: float) -> FloatArray:
    """[bins] how many units fall into each bin if all are identified independently at one rate."""
    found = np.zeros(_BINS)
    for size, count in zip(*np.unique(times, return_counts=True), strict=True):
        every = np.arange(size + 1)
        np.add.at(found, _bins(every, np.full(size + 1, size)), count * binom.pmf(every, size, rate))
    return found
