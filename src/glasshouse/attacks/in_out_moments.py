"""In-models and out-models of each record: their number, mean margin and spread around it; attacks by these moments."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from glasshouse.attacks.attack import Attack
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.threads import over_records
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import check_simulation, left_out_models, rows_without

ALMOST_ZERO = 1e-12  # a variance: equal margins are possible; certainty is not

_ROOM = 1 << 20  # records of all sets of references whose moments are in memory at once
_BATCHES = 16  # of sets, at most, in a large pool: each reads the whole pool
_WIDTH = 64  # models that are added up one after the other; a usual pool has no more


class Moments(NamedTuple):
    """Number of models, mean of their margins, and summed squares around it, [N] each."""

    models: FloatArray
    mean: FloatArray
    squares: FloatArray

    def of_set(self, number: int) -> Moments:
        """Those of one of several sets."""
        return Moments(*(part[number] for part in self))

    def pooled_variance(self, attack: str) -> float:
        """One variance for all records; refused where none of them has two models."""
        if not (freedom := (self.models - 1).sum()):
            raise InputError(
                f"shadows: {attack} estimates a spread, which needs 2 or more in-models or out-models of some record; "
                f"here each record has 1. Train 4 or more shadow models."
            )
        return max(float(self.squares.sum() / freedom), ALMOST_ZERO)


class LeaveOut:
    """Sums over all models of a pool but a few, for many choices of the few.

    Models are added up in groups of 64, the groups in groups of 64, and so on; only the groups of a model that is left
    out are added up again, so K choices take K log K steps. Nothing is subtracted, so no digits are lost.

    ``combine`` makes, of arrays about some models [K, N] such as ``parts``, the same about all of them together, [N]
    each; it is applied to what it gave, too, and entries that are all 0 must not change what it gives.
    """

    def __init__(self, parts: Sequence[FloatArray], combine: Callable[..., tuple[FloatArray, ...]]) -> None:
        self._combine, self._levels = combine, [list(parts)]
        while (models := len(self._levels[-1][0])) > _WIDTH:
            self._levels[-1] = [np.pad(part, ((0, -models % _WIDTH), (0, 0))) for part in self._levels[-1]]
            self._levels.append(self._groups(self._levels[-1], np.arange(-(-models // _WIDTH))[:, None]))

    def without(self, left: Positions) -> tuple[FloatArray, ...]:
        """What the models give without those that are left out: rows [L, 1], or [L, N] record by record."""
        if not len(left):
            return self._combine(*self._levels[-1])
        return self._replaced(0, left, [0.0] * len(self._levels[0]))

    def _replaced(self, depth: int, rows: Positions, values: Sequence[Any]) -> tuple[FloatArray, ...]:
        """What all give if these rows of a level have other values for a moment."""
        level = self._levels[depth]
        at: Any = rows[:, 0] if rows.shape[1] == 1 else (rows, np.arange(rows.shape[1]))
        kept = [part[at] for part in level]
        for part, value in zip(level, values, strict=True):
            part[at] = value
        if depth == len(self._levels) - 1:
            found = self._combine(*level)
        else:
            groups = rows // _WIDTH if rows.shape[1] > 1 else np.unique(rows // _WIDTH)[:, None]
            found = self._replaced(depth + 1, groups, self._groups(level, groups))
        for part, value in zip(level, kept, strict=True):
            part[at] = value
        return found

    def _groups(self, level: Sequence[FloatArray], groups: Positions) -> list[FloatArray]:
        """What groups of a level give, in as many arrays as there are: [G, N] each."""
        within, records = np.arange(_WIDTH)[:, None], np.arange(level[0].shape[1])
        found = []
        for group in groups:
            first = group * _WIDTH
            at: Any = slice(first[0], first[0] + _WIDTH) if len(group) == 1 else (first + within, records)
            found.append(self._combine(*(part[at] for part in level)))
        return [np.stack(part) for part in zip(*found, strict=True)]


def moments(values: FloatArray | Evidence, who: BoolArray) -> Moments:
    """Moments of values [K, N] over the chosen entries of each column, [K, N]; every column needs at least one.

    Of evidence the values are its statistic, which is made block by block: that of all is as large as the losses.
    """
    found = [np.empty(who.shape[1]) for _ in Moments._fields]  # apart, since often only the means are used further

    def write(some: slice) -> None:
        for part, value in zip(found, _moments(who[:, some].astype(np.float64), _block(values, some)), strict=True):
            part[some] = value

    over_records(write, who.shape[1], models=len(who))
    return Moments(*found)


def _block(values: FloatArray | Evidence, some: slice) -> FloatArray:
    """Values of a block of records, near each other in memory."""
    return values.statistic_of(records=some) if isinstance(values, Evidence) else values[:, some].copy()


def moments_among(values: FloatArray | Evidence, who: BoolArray, sets: Sequence[Positions]) -> Moments:
    """The same without some of the models, [sets, N] each, for each set of rows that is left out, [L, 1] or [L, N].

    Where none of the others counts, moments are 0.
    """
    found = [np.zeros((len(sets), who.shape[1])) for _ in Moments._fields]

    def write(some: slice) -> None:
        pool = LeaveOut([who[:, some].astype(np.float64), _block(values, some)], _moments)
        for number, left in enumerate(sets):
            without = pool.without(left if left.shape[1] == 1 else left[:, some])
            for part, value in zip(found, without, strict=True):
                part[number, some] = value

    over_records(write, who.shape[1], models=len(who))
    return Moments(*found)


def _moments(models: FloatArray, means: FloatArray, squares: FloatArray | None = None) -> tuple[FloatArray, ...]:
    """Moments [N] of several groups of models together, from those of each [K, N]; a single model has no squares."""
    count = models.sum(axis=0)
    # entries times their number, added up one by one: those with the number 0 change no bit of a sum
    mean = np.einsum("kn,kn->n", means, models) / np.maximum(count, 1.0)
    apart = means - mean
    np.multiply(apart, apart, out=apart)
    around = np.einsum("kn,kn->n", apart, models)
    return count, mean, around if squares is None else around + squares.sum(axis=0)


def left_out(rows: Positions, models: int) -> Positions:
    """Which models of a pool are not in a set of rows [R, 1] or [R, N]: [L, 1] or [L, N], rising."""
    there = np.zeros((models, rows.shape[1]), dtype=np.bool_)
    np.put_along_axis(there, rows, True, axis=0)
    return np.argsort(there, axis=0, kind="stable")[: models - len(rows)]


def panels(members: BoolArray, most: int) -> list[Positions]:
    """Different sets of references [R, 1] or [R, N], each that of a simulated target; a model and its complement share.

    They come in the order of the targets, ``most`` of them at most.
    """
    distinct: dict[bytes, Positions] = {}
    for left in left_out_models(members):
        distinct.setdefault(left.tobytes(), left)
        if len(distinct) == most:
            break
    return [rows_without(left, len(members)) for left in distinct.values()]


def wanted_sides(mode: Mode) -> list[bool]:
    """Which models an attack compares a record with: out-models (False), and online in-models."""
    return [False] if mode == "offline" else [False, True]


def side_moments(evidence: Evidence, mode: Mode) -> list[Moments]:
    """Moments of the shadow models' statistic over each wanted side; a record without models there is refused."""
    sides = wanted_sides(mode)
    for inside in sides:
        evidence.require_side(inside=inside)
    return [moments(evidence, evidence.shadow_members == inside) for inside in sides]


class SimulatedSides(NamedTuple):
    """A simulated target: moments of its references for each wanted side, its own statistic [N] and members [N]."""

    sides: list[Moments]
    statistic: FloatArray
    members: BoolArray


def simulated_moments(
    evidence: Evidence, sides: Sequence[bool | None], *, statistic: FloatArray | None = None
) -> Iterator[SimulatedSides]:
    """Each simulated target with the moments over in-models (True), out-models (False) or all (None) of its references.

    They are of the ``statistic`` [K, N], by default `Evidence.shadow_statistic`, without a copy of the pool for every
    target: a model and its complement share their sums.
    """
    members = evidence.shadow_members
    values = evidence if statistic is None else statistic
    for targets, sets in simulated_sets(members):
        found = []
        for inside in sides:
            who = np.ones_like(members) if inside is None else members == inside
            found.append(moments_among(values, who, sets))
            for number in np.flatnonzero(~found[-1].models.all(axis=1))[:1].tolist():
                evidence.among(rows_without(sets[number], evidence.models)).require_side(inside=bool(inside))
        for k, number in targets:
            own = evidence.statistic_of(k) if statistic is None else statistic[k]
            yield SimulatedSides([one.of_set(number) for one in found], own, members[k])


def sets_at_once(records: int) -> int:
    """For how many sets of references the moments of so many records are in memory at once."""
    return max(1, _ROOM // records)


def simulated_sets(members: BoolArray) -> Iterator[tuple[list[tuple[int, int]], list[Positions]]]:
    """Pairs of a simulated target and the number of its set, and the sets of models that judge none: [L, 1] or [L, N].

    They come as many sets at a time as `sets_at_once` says, or more of a large pool.
    """
    check_simulation(len(members))
    targets: list[tuple[int, int]] = []
    sets: list[Positions] = []
    numbers: dict[bytes, int] = {}  # of sets that are the same for all records: a pair shares one
    for k, left in enumerate(left_out_models(members)):
        shared = left.shape[1] == 1
        room = max(sets_at_once(members.shape[1]), len(members) // _BATCHES)
        if len(sets) >= room and left.tobytes() not in numbers:
            yield targets, sets
            targets, sets, numbers = [], [], {}
        number = numbers.setdefault(left.tobytes(), len(sets)) if shared else len(sets)
        sets += [left] * (number == len(sets))
        targets.append((k, number))
    yield targets, sets


@dataclass(frozen=True, kw_only=True)
class MomentsAttack(Attack):
    """An attack on the target's statistic and the moments of its references, by what it learned from the pool."""

    quick_simulation: ClassVar[bool] = True

    mode: Mode = "online"
    fit_: Any = field(default=None, repr=False, compare=False)  # what it learned; None before `tuned`

    @abc.abstractmethod
    def _learned(self, evidence: Evidence) -> Any:
        """What is learned from a pool, without a look at the target."""

    @abc.abstractmethod
    def _scores(self, fit: Any, evidence: Evidence, statistic: FloatArray, sides: Sequence[Moments]) -> FloatArray:
        """Scores [N] from a target's statistic [N] and the moments of its references on each wanted side."""

    def _fit(self, evidence: Evidence) -> Any:
        return self._learned(evidence) if self.fit_ is None else self.fit_

    def _simulated(self, evidence: Evidence) -> Iterator[SimulatedSides]:
        return simulated_moments(evidence, wanted_sides(self.mode))

    def _of_target(self, fit: Any, evidence: Evidence) -> FloatArray:
        return self._scores(fit, evidence, evidence.target_statistic, side_moments(evidence, self.mode))

    def score(self, evidence: Evidence) -> FloatArray:
        """Scores, [N]; higher means member."""
        return self._of_target(self._fit(evidence), evidence)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target, without a copy of the pool for every one of them."""
        fit = self._fit(evidence)
        for target in self._simulated(evidence):
            yield self._scores(fit, evidence, target.statistic, target.sides), target.members

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with what it learns from this pool."""
        return replace(self, fit_=self._fit(evidence))
