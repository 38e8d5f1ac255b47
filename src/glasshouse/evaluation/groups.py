"""Leak per group of records: where an attack does better or worse than on the other groups, after correction.

Groups come from the user's own columns, from classes and from degrees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import logit
from scipy.stats import norm
from scipy.stats import t as student

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.evaluation.intervals import Interval, clopper_pearson, logit_interval, placements, separated

_FEW = 8  # numbers with more different values than this are cut into quartiles
_RESERVED = ("id", "label", "member", "degree", "class")
_MISSING = "missing"


def as_groups(groups: Mapping[str, ArrayLike] | None, count: int) -> dict[str, NDArray[Any]]:
    """The user's columns, checked: one value per record, [N] each; empty if none are given.

    Example:
        >>> as_groups({"sex": ["f", "m"]}, 2)
        {'sex': array(['f', 'm'], dtype='<U1')}
        >>> as_groups({"sex": ["f", "m"]}, 3)
        Traceback (most recent call last):
        glasshouse.InputError: groups: 'sex' has shape (2,), but there are 3 records; give one value per record.
    """
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
    if faults:
        raise InputError(*faults)
    return found


def bands(values: NDArray[Any]) -> tuple[IntArray, tuple[str, ...]]:
    """[N] the group of each record, and the groups' names, in the order of the values.

    Text and numbers with few different values are taken as they are; other numbers are cut into quartiles, and a band
    is named after its smallest and largest value. Empty values are a group. Numbers that are names, such as classes,
    are given as text.

    Example:
        >>> bands(np.array(["b", "a", "b"]))
        (array([1, 0, 1]), ('a', 'b'))
        >>> bands(np.arange(100))[1]
        ('0–24', '25–49', '50–74', '75–99')
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
        names = [_name(low) if low == high else f"{_name(low)}–{_name(high)}" for low, high in ends]
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
_RANKABLE = 3.0  # min(members, non-members) · A · (1 - A): with fewer wrongly ordered records no test keeps its level
_SHOWN = 40  # groups per column, the largest ones

Side = Literal["more", "less", ""]


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
    singled_out: Side = ""  # ``"more"`` or ``"less"`` if its area differs from that of the others after correction


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
    confidence: float = 0.95,
) -> tuple[GroupLeak, ...]:
    """The leak of every group of every column, each with intervals that are corrected for how many groups there are.

    A group is singled out if its area differs from that of the other groups of its column: within-group areas are
    compared, so a group whose scores are merely all higher is not singled out.

    Args:
        scores: [N] of one attack, higher means member.
        members: [N] who trained the target.
        columns: values [N] by the name of the column.
        called: [N] which records the attack's first threshold flags.
        leak: whether a leak was shown at all; without one no group is singled out.
        confidence: of all intervals together, and of all comparisons together.

    Example:
        >>> random = np.random.default_rng(0)
        >>> members, odd = random.random(4000) < 0.5, np.arange(4000) % 4 == 0
        >>> scores = random.normal(size=4000) + 2.0 * (members & odd) + 0.5 * members
        >>> found = group_leaks(scores, members, {"odd": odd})
        >>> [(one.group, round(one.auc, 1), one.singled_out) for one in found]
        [('False', 0.6, 'less'), ('True', 1.0, 'more')]
    """
    split = {name: _largest(values) for name, values in columns.items()}
    each = 1 - (1 - confidence) / max(1, sum(map(len, split.values())))
    areas = {name: {group: _area(scores[at], members[at]) for group, at in split[name].items()} for name in split}
    compared = {name: {group: one for group, one in found.items() if one is not None} for name, found in areas.items()}
    level = (1 - confidence) / max(1, sum(len(found) for found in compared.values() if len(found) > 1))
    leaks = []
    for name, groups in split.items():
        for group, at in groups.items():
            others = [one for other, one in compared[name].items() if other != group]
            own = areas[name][group]
            verdict = _compare(own, others, level=level) if own is not None and others else None
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

    DeLong's alone covers too little near 1 with few members, where its variance is small by chance: 99.0 % of a wanted
    99.5 % at an area of 0.95 with 50 and 450 records (binormal scores, 2 000 runs), and both together 99.8 %.
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
    """Whether an area differs from the weighted mean of others; None where no test keeps its level.

    Its variance is at least the one that it would have if its placements varied as those of the others: where all
    groups leak alike, an area near 1 has a variance of its own that is small by chance.
    """
    total = sum(one.weight for one in others)
    shares = [one.weight / total for one in others]
    rest = sum(share * one.auc for share, one in zip(shares, others, strict=True))
    common = (total * rest + own.weight * own.auc) / (total + own.weight)
    if min(own.members, own.others) * common * (1 - common) < _RANKABLE:
        return None
    spread = sum(share**2 * one.variance for share, one in zip(shares, others, strict=True))
    usual = sum(
        share * (one.inside / own.members + one.outside / own.others) for share, one in zip(shares, others, strict=True)
    )
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
