"""Leak per group of records: where an attack does better or worse than on the other groups, after correction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import logit
from scipy.stats import hypergeom, norm
from scipy.stats import t as student

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.evaluation.intervals import (
    Interval,
    clopper_pearson,
    logit_interval,
    lowest_rate,
    placements,
    separated,
)

_FEW = 8  # numbers with more different values than this are cut into quartiles
_RESERVED = ("id", "label", "member", "degree", "class", "worst")
_MISSING = "missing"


def as_groups(groups: Mapping[str, ArrayLike] | None, count: int) -> dict[str, NDArray[Any]]:
    """The user's columns, checked: one value per record, [N] each; empty if none are given."""
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise InputError(
            f"groups: {type(groups).__name__} is not a mapping; give columns by name, such as groups={{'sex': values}}."
        )
    faults, found = [], {}
    for name, given in groups.items():
        if not isinstance(name, str) or not name.strip():
            faults.append(f"groups: {name!r} is not the name of a column; use text.")
            continue
        values = np.asarray(given)
        if name in _RESERVED or name.endswith(("_score", "_rank", "_decision", "_fdr", "_stability")):
            faults.append(f"groups: {name!r} is the name of a column of the result; give it another name.")
        elif values.shape != (count,):
            faults.append(
                f"groups: {name!r} has shape {values.shape}, but there are {count} records; give one value per record."
            )
        found[name] = values
    raise_faults(faults)
    return found


def bands(values: NDArray[Any]) -> tuple[IntArray, tuple[str, ...]]:
    """[N] the group of each record, and the groups' names, in the order of the values.

    Numbers with many different values are cut into quartiles; empty values are a group. Numbers that are names, such
    as classes, are given as text.
    """
    missing = np.array([value is None or value != value for value in values.tolist()], dtype=np.bool_)
    present = values[~missing]
    if values.dtype.kind == "O":
        present = _plain(present)
    different, codes = np.unique(present, return_inverse=True)
    names = [_name(value) for value in different.tolist()]
    if present.dtype.kind in "US":
        with suppress(ValueError):  # texts that are all numbers: "2" before "10"
            order = np.argsort(different.astype(np.float64), kind="stable")
            names, codes = [names[place] for place in order], np.argsort(order)[codes]
    if present.dtype.kind in "iuf" and len(different) > _FEW:
        cuts = np.unique(np.quantile(present, (0.25, 0.5, 0.75), method="lower"))
        codes = np.searchsorted(cuts, present, side="left")  # up to and with the quartile
        held, codes = np.unique(codes, return_inverse=True)
        ends = [(present[codes == band].min(), present[codes == band].max()) for band in range(len(held))]
        to = " to " if present.min() < 0 else "–"  # a dash beside a minus is hard to read
        names = [_name(low) if low == high else f"{_name(low)}{to}{_name(high)}" for low, high in ends]
    places = np.full(len(values), len(names), dtype=np.int64)
    places[~missing] = codes
    return places, (*names, _MISSING) if missing.any() else tuple(names)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as numbers if all of them are, otherwise as text."""
    given = values.tolist()
    if given and all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return np.array(given, dtype=np.float64)
    return np.array([str(value) for value in given], dtype=np.str_)


def _name(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_FEWEST = 20  # members, and non-members, for an area with an interval
_FEWEST_FLAGS = 5  # members, and non-members, of a group whose flags are compared
_RANKABLE = 3.0  # min(members, non-members) · A · (1 - A): with fewer wrongly ordered records no test keeps its level
_SHOWN = 40  # groups per column, the largest ones
_ERROR = 1 - 0.95  # of all intervals together, and of all comparisons together

Side = Literal["more", "less", ""]
Cell = tuple[str, str]  # a column and one of its groups


@dataclass(frozen=True, kw_only=True)
class GroupLeak:
    """One attack on one group of records. All intervals hold at once, over all groups of the run."""

    column: str  # what divides the records, such as ``"class"``
    group: str  # the value, or the range of values
    members: int  # how many members are in it
    non_members: int  # how many non-members
    auc: float | None = None  # area under the ROC within the group; None with fewer than 20 members or 20 non-members
    auc_interval: Interval | None = None  # of it
    tpr: float | None = None  # share of its members flagged at the first threshold; None without either
    tpr_interval: Interval | None = None  # of it
    fpr: float | None = None  # the same share of its non-members
    fpr_interval: Interval | None = None  # of it
    judged: bool = False  # whether the group was compared with the others of its column; small groups are not
    singled_out: Side = ""  # ``"more"`` or ``"less"`` if it differs from the others after correction

    @property
    def flags(self) -> str:
        """How many of its members and non-members are flagged; empty without a threshold."""
        if self.tpr is None or self.fpr is None:
            return ""
        identified, flagged = round(self.tpr * self.members), round(self.fpr * self.non_members)
        return f"{identified} of {self.members} members and {flagged} of {self.non_members} non-members flagged"


@dataclass(frozen=True, kw_only=True)
class WorstCell:
    """The group, or the combination of two groups, of which the largest share of members is identified."""

    parts: tuple[Cell, ...]  # one, or one of each of two columns
    members: int  # how many members are in it
    non_members: int  # how many non-members
    identified: int  # members that the first threshold flags
    flagged: int  # non-members that it flags
    tpr_interval: Interval  # of the share of its members that is identified; it holds for all cells at once
    p_value: float  # of "it leaks no more than its own non-members' flags and than other members' tell"; for all cells
    cells: int  # how many groups and combinations were looked at

    @property
    def name(self) -> str:
        """Its columns and groups."""
        return " with ".join(f"{column} {group}" for column, group in self.parts)

    @property
    def group_leak(self) -> GroupLeak:
        """The cell as a row of a table or a picture."""
        return GroupLeak(
            column=self.name,
            group="most exposed",
            members=self.members,
            non_members=self.non_members,
            tpr=self.identified / self.members,
            tpr_interval=self.tpr_interval,
            fpr=self.flagged / self.non_members,
            judged=True,
            singled_out="more",
        )


@dataclass(frozen=True)
class _Area:
    """The area within a group and the variances of its placements (DeLong et al. 1988)."""

    auc: float
    inside: float
    outside: float
    members: int
    others: int

    @property
    def variance(self) -> float:
        return self.inside / self.members + self.outside / self.others

    @property
    def shrunk(self) -> float:
        """The area, moved off 0 and 1 by half of a pair, so that its logit is finite."""
        pairs = self.members * self.others
        return (self.auc * pairs + 0.5) / (pairs + 1)

    @property
    def weight(self) -> float:
        """One over its variance without a leak, up to a factor."""
        return self.members * self.others / (self.members + self.others)


def group_leaks(
    scores: FloatArray,
    members: BoolArray,
    columns: Mapping[str, NDArray[Any]],
    *,
    called: BoolArray | None = None,
    leak: bool = True,
) -> tuple[GroupLeak, ...]:
    """The leak of every group of every column, by scores [N] and, if there is a threshold, the flagged records [N].

    A group differs if a significantly larger or smaller share of its members is flagged than of the other
    members (Fisher's exact test), and its members exceed its non-members by more, or by less, than elsewhere. Without
    flags areas within groups are compared, so that a group whose scores are merely all higher does not differ. Without
    a ``leak`` no group is said to differ.
    """
    split = {(name, group): at for name, values in columns.items() for group, at in _largest(values).items()}
    each = 1 - _ERROR / max(1, len(split))
    areas = {one: _area(scores[at], members[at]) for one, at in split.items()}
    sides = _by_areas(areas) if called is None else _by_flags(called, members, split)
    leaks = []
    for (name, group), at in split.items():
        own, verdict = areas[name, group], sides.get((name, group))
        leaks.append(
            GroupLeak(
                column=name,
                group=group,
                members=int(members[at].sum()),
                non_members=int((~members[at]).sum()),
                auc=None if own is None else own.auc,
                auc_interval=None if own is None else _interval(own, confidence=each),
                **_rates(called, members, at, confidence=each),
                judged=verdict is not None,
                singled_out=(verdict or "") if leak else "",
            )
        )
    return tuple(leaks)


def _by_areas(areas: Mapping[Cell, _Area | None]) -> dict[Cell, Side | None]:
    """Whether the area of a group differs from those of its column's others; None where that cannot be compared."""
    known = {one: area for one, area in areas.items() if area is not None}
    beside = {one: [area for other, area in known.items() if other[0] == one[0] and other != one] for one in known}
    compared = [one for one, others in beside.items() if others]
    return {one: _compare(known[one], beside[one], level=_ERROR / len(compared)) for one in compared}


def _kinds(called: BoolArray, members: BoolArray) -> tuple[BoolArray, ...]:
    """Members, non-members, and the flagged of both, [N] each."""
    return members, ~members, members & called, ~members & called


def _by_flags(called: BoolArray, members: BoolArray, split: Mapping[Cell, NDArray[np.intp]]) -> dict[Cell, Side | None]:
    """Whether more or fewer of a group's members are flagged; groups that are too small are left out."""
    kinds = _kinds(called, members)
    whole = [int(kind.sum()) for kind in kinds]
    counts = {one: [int(kind[at].sum()) for kind in kinds] for one, at in split.items()}
    counts = {one: own for one, own in counts.items() if min(*own[:2], whole[0] - own[0]) >= _FEWEST_FLAGS}
    if not counts:
        return {}
    inside, outside, hits, wrong = np.array(list(counts.values())).T  # [groups] each
    chances = whole[0], whole[2], inside  # of hits, with the group's size and the number of all hits fixed
    tails = 2 * np.minimum(hypergeom.sf(hits - 1, *chances), hypergeom.cdf(hits, *chances))
    more = hits / inside - (whole[2] - hits) / (whole[0] - inside)
    excess = more - (wrong / outside - (whole[3] - wrong) / np.maximum(1, whole[1] - outside))
    differs = (tails <= _ERROR / len(counts)) & (more * excess > 0)
    judged = zip(counts, differs, more > 0, strict=True)
    return {one: ("more" if up else "less") if shown else "" for one, shown, up in judged}


def worst_cell(called: BoolArray, members: BoolArray, columns: Mapping[str, NDArray[Any]]) -> WorstCell | None:
    """The group or combination of two groups that is most exposed; None if none is more than others, beyond chance.

    Every group and every combination of two columns is looked at, down to five members and five non-members; rarer
    values together. In the cell more members than non-members are flagged, and more than of all other members
    (one-sided exact tests of Fisher, both corrected for the number of cells). Of these cells it is the one whose
    interval of the share of identified members has the highest lower end; a combination only if that end is above the
    share of the worst single group.
    """
    held = {name: _common(values, members) for name, values in columns.items()}
    parts: list[tuple[Cell, ...]] = []
    found: list[IntArray] = [np.empty((0, 4), dtype=np.int64)]
    for names in (one for size in (1, 2) for one in itertools.combinations(held, size)):
        groups, counts = _counted(called, members, [held[name] for name in names])
        enough = (counts[:, :2] >= _FEWEST_FLAGS).all(axis=1) & (counts[:, 0] < members.sum())
        parts += [tuple(zip(names, group, strict=True)) for group, kept in zip(groups, enough, strict=True) if kept]
        found.append(counts[enough])
    inside, outside, hits, wrong = np.concatenate(found).T  # [cells] each
    within = hypergeom.sf(hits - 1, inside + outside, hits + wrong, inside)
    beside = hypergeom.sf(hits - 1, int(members.sum()), int((called & members).sum()), inside)
    p_values = np.minimum(1.0, len(parts) * np.maximum(within, beside))
    tail = _ERROR / max(1, len(parts)) / 2
    sure = (p_values <= _ERROR) & (hits > 0)
    lows = np.where(sure, lowest_rate(np.maximum(hits, 1), inside, tail), 0.0)
    if not lows.any():
        return None
    at, alone = int(np.argmax(lows)), np.array([len(part) == 1 for part in parts])
    if (lows * alone).any() and lows[at] <= hits[best := int(np.argmax(lows * alone))] / inside[best]:
        at = best
    return WorstCell(
        parts=parts[at],
        members=int(inside[at]),
        non_members=int(outside[at]),
        identified=int(hits[at]),
        flagged=int(wrong[at]),
        tpr_interval=clopper_pearson(int(hits[at]), int(inside[at]), confidence=1 - 2 * tail),
        p_value=float(p_values[at]),
        cells=len(parts),
    )


def _common(values: NDArray[Any], members: BoolArray) -> tuple[IntArray, tuple[str, ...]]:
    """[N] the group of each record, and the groups' names; those with too few records to compare are one group."""
    places, names = bands(values)
    sizes = [np.bincount(places[side], minlength=len(names)) for side in (members, ~members)]
    rare = np.minimum(*sizes) < _FEWEST_FLAGS
    if rare.sum() < 2:
        return places, names
    kept = tuple(name for name, few in zip(names, rare, strict=True) if not few)
    return np.where(rare, len(kept), np.cumsum(~rare) - 1)[places], (*kept, f"{rare.sum()} rare values")


def _counted(
    called: BoolArray, members: BoolArray, columns: Sequence[tuple[IntArray, tuple[str, ...]]]
) -> tuple[list[tuple[str, ...]], IntArray]:
    """The combinations that occur, and for each of them members, non-members, and the flagged of both, [cells, 4]."""
    shape = tuple(len(names) for _, names in columns)
    codes = np.ravel_multi_index([places for places, _ in columns], shape)
    present, codes = np.unique(codes, return_inverse=True)
    kinds = _kinds(called, members)
    counts = np.stack([np.bincount(codes[kind], minlength=len(present)) for kind in kinds], axis=1)
    which = zip(*np.unravel_index(present, shape), strict=True)
    return [tuple(names[at] for at, (_, names) in zip(one, columns, strict=True)) for one in which], counts


def _largest(values: NDArray[Any]) -> dict[str, NDArray[np.intp]]:
    """Which records are in which group, [records of the group] by its name; the largest groups, in their order."""
    places, names = bands(values)
    order = np.argsort(places, kind="stable")
    ends = np.searchsorted(places[order], np.arange(len(names) + 1))
    biggest = np.sort(np.argsort(-np.diff(ends), kind="stable")[:_SHOWN])
    return {names[place]: order[ends[place] : ends[place + 1]] for place in biggest.tolist()}


def _area(scores: FloatArray, members: BoolArray) -> _Area | None:
    inside, outside = int(members.sum()), int((~members).sum())
    if min(inside, outside) < _FEWEST:
        return None
    above, below = placements(scores, members)
    return _Area(float(above.mean()), float(np.var(above, ddof=1)), float(np.var(below, ddof=1)), inside, outside)


def _interval(area: _Area, *, confidence: float) -> Interval:
    """The wider ends of two intervals: DeLong's on the logit scale with Student's t, and Newcombe's.

    DeLong's alone covers too little near 1 with few members, where its variance is small by chance.
    """
    if area.variance == 0 or area.auc in (0.0, 1.0):
        return separated(area.auc, area.members, area.others, confidence=confidence)
    quantile = float(student.ppf((1 + confidence) / 2, _freedom([(1.0, area)])))
    one, other = logit_interval(area.shrunk, area.variance, quantile), _newcombe(area, confidence=confidence)
    return Interval(min(one.low, other.low), max(one.high, other.high))


def _newcombe(area: _Area, *, confidence: float) -> Interval:
    """All areas whose variance, by the counts alone, allows the one that was found (Newcombe 2006, method 5)."""
    size, quantile = (area.members + area.others) / 2 - 1, float(norm.ppf((1 + confidence) / 2))

    def excess(true: float) -> float:
        spread = 1 + size * (1 - true) / (2 - true) + size * true / (1 + true)
        variance = true * (1 - true) * spread / (area.members * area.others)
        return abs(true - area.shrunk) - quantile * math.sqrt(variance)

    return Interval(float(brentq(excess, 0.0, area.shrunk)), float(brentq(excess, area.shrunk, 1.0)))


def _compare(own: _Area, others: list[_Area], *, level: float) -> Side | None:
    """Whether an area differs from the weighted mean of others; None where no test keeps its level."""
    total = sum(one.weight for one in others)
    shares = [one.weight / total for one in others]
    rest = sum(share * one.auc for share, one in zip(shares, others, strict=True))
    common = (total * rest + own.weight * own.auc) / (total + own.weight)
    if min(own.members, own.others) * common * (1 - common) < _RANKABLE:
        return None
    spread = sum(share**2 * one.variance for share, one in zip(shares, others, strict=True))
    # the variance if its placements varied as those of the others: near 1 its own is small by chance
    varied = [one.inside / own.members + one.outside / own.others for one in others]
    usual = sum(share * one for share, one in zip(shares, varied, strict=True))
    slope, usual_slope = own.shrunk * (1 - own.shrunk), rest * (1 - rest)
    if not usual_slope:  # the others are separated perfectly, which their own variance cannot judge
        return None
    variance = max(own.variance / slope**2, usual / usual_slope**2) + spread / usual_slope**2
    if variance == 0:
        return ""
    distance = float((logit(own.shrunk) - logit(rest)) / np.sqrt(variance))
    freedom = _freedom([(1.0, own), *zip(shares, others, strict=True)])
    if 2 * float(student.sf(abs(distance), freedom)) > level:
        return ""
    return "more" if distance > 0 else "less"


def _freedom(parts: list[tuple[float, _Area]]) -> float:
    """Degrees of freedom of a weighted sum of areas (Welch-Satterthwaite; Brunner and Munzel 2000 for one area)."""
    variances = [
        (share**2 * variance / count, count)
        for share, one in parts
        for variance, count in ((one.inside, one.members), (one.outside, one.others))
    ]
    squares = sum(variance**2 / (count - 1) for variance, count in variances)
    return float(sum(variance for variance, _ in variances) ** 2 / squares) if squares else 1.0


def _rates(called: BoolArray | None, members: BoolArray, at: NDArray[np.intp], *, confidence: float) -> dict[str, Any]:
    """True- and false-positive rate of a group at the attack's threshold, with exact intervals."""
    found: dict[str, Any] = {}
    for name, who in (("tpr", members[at]), ("fpr", ~members[at])):
        if called is not None and who.any():
            hits, trials = int(called[at][who].sum()), int(who.sum())
            found |= {name: hits / trials, f"{name}_interval": clopper_pearson(hits, trials, confidence=confidence)}
    return found
