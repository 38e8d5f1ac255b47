"""The exact ROC: tied scores move together, and no rate is interpolated. Scores are sorted once."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import area_of_sorted, area_under_roc
from glasshouse.data import as_members


@dataclass(frozen=True, eq=False)
class ROC:
    """Every achievable pair of rates, from flagging no record to flagging all of them."""

    fpr: FloatArray  # [P] false-positive rates, rising
    tpr: FloatArray  # [P] true-positive rates
    thresholds: FloatArray  # [P] records scoring at least this are flagged; the first is infinite
    members: int  # how many members were scored
    non_members: int  # how many non-members

    def __repr__(self) -> str:
        return f"ROC({self.members} members, {self.non_members} non-members, area {self.area:.3f})"

    @property
    def area(self) -> float:
        """The exact area under the curve; ties count half. The same number as `auc`, without another sort."""
        true, false = np.rint(self.tpr * self.members), np.rint(self.fpr * self.non_members)
        below = 2 * self.non_members - false[1:] - false[:-1]  # twice as many as a member of this step scores above
        return float((np.diff(true) * below).sum() / 2 / (self.members * self.non_members))

    def point_at(self, fpr: float) -> int:
        """Index of the point with the largest achievable FPR not above ``fpr``, and the largest TPR there."""
        allowed = allowed_wrong(fpr, self.non_members)
        return int(np.searchsorted(np.rint(self.fpr * self.non_members), allowed, side="right")) - 1


def allowed_wrong(fpr: float, non_members: int) -> int:
    """How many non-members may be wrongly flagged at a rate; 3 of 300 at 0.01, although 0.01 is not exactly 1/100."""
    return int(np.floor(fpr * non_members * (1 + 1e-12)))


def roc(scores: ArrayLike, members: ArrayLike) -> ROC:
    """The ROC of scores [N] against true membership [N].

    Example:
        >>> curve = roc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
        >>> curve.fpr, curve.tpr
        (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]))
    """
    values, mask = checked(scores, members)
    order = np.argsort(-values)  # the order within a tie does not matter
    ranked = values[order]
    last_of_tie = np.append(np.flatnonzero(np.diff(ranked) != 0), len(ranked) - 1)
    true = np.cumsum(mask[order])[last_of_tie]
    called = last_of_tie + 1
    inside, outside = int(mask.sum()), int((~mask).sum())
    return ROC(
        fpr=np.concatenate([[0.0], (called - true) / outside]),
        tpr=np.concatenate([[0.0], true / inside]),
        thresholds=np.concatenate([[np.inf], ranked[last_of_tie]]),
        members=inside,
        non_members=outside,
    )


def auc(scores: ArrayLike, members: ArrayLike) -> float:
    """Area under the exact ROC; ties count half.

    Example:
        >>> auc([1.0, 1.0, 1.0], [1, 0, 1])
        0.5
    """
    return area_under_roc(*checked(scores, members))


def tpr_at_fpr(scores: ArrayLike, members: ArrayLike, fpr: float) -> float:
    """True-positive rate at the largest achievable false-positive rate not above ``fpr``; never interpolated.

    Example:
        >>> tpr_at_fpr([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], 0.4)
        0.5
    """
    curve = roc(scores, members)
    return float(curve.tpr[curve.point_at(fpr)])


def checked(scores: ArrayLike, members: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Scores and members that can be evaluated: of equal length, without NaN, with both kinds present."""
    given = np.asarray(scores)
    if given.dtype == np.bool_ and np.asarray(members).dtype.kind == "f":
        raise InputError("scores: booleans are not scores; give the arguments in the order (scores, members).")
    values = given.astype(np.float64, copy=False)
    if values.ndim != 1:
        raise InputError(f"scores: shape {values.shape}; expected [N].")
    mask = as_members(members, values.shape, place="members")
    if np.isnan(values).any():
        raise InputError(f"scores: record at position {int(np.flatnonzero(np.isnan(values))[0])} has the score NaN.")
    check_both_kinds(mask)
    return values, mask


def check_both_kinds(members: BoolArray, *, of: str = "records") -> None:
    """Refuse records, [N] whether each is a member, that are all of one kind."""
    if members.all() or not members.any():
        kind = "members" if members.any() else "non-members"
        raise InputError(f"members: all {len(members)} {of} are {kind}; rates need both members and non-members.")


@dataclass(frozen=True, eq=False)
class SortedScores:
    """A ROC without its points. Two sorts of values take a fifth of the time of the order of all records."""

    inside: FloatArray  # [n₁] scores of members, rising
    outside: FloatArray  # [n₀] scores of non-members, rising

    @classmethod
    def of(cls, scores: FloatArray, members: BoolArray) -> SortedScores:
        """From scores [N] without NaN and members [N]."""
        return cls(np.sort(scores[members]), np.sort(scores[~members]))

    @property
    def area(self) -> float:
        """The exact area under the ROC; ties count half."""
        return area_of_sorted(self.inside, self.outside)

    @property
    def first_fpr(self) -> float:
        """The smallest false-positive rate above which a threshold exists: that of the highest score."""
        return _reaching(self.outside, self._highest) / len(self.outside)

    def rate_at(self, fpr: float) -> tuple[float, bool]:
        """TPR at a rate, and whether a threshold reaches it; if not, the TPR there when ties are broken at random."""
        cut = self._threshold(fpr)
        if cut is not None:
            return _reaching(self.inside, cut) / len(self.inside), True
        return _reaching(self.inside, self._highest) / len(self.inside) * fpr / self.first_fpr, False

    def cut_at(self, fpr: float) -> float:
        """The lowest score that keeps the rate; above all scores if no record can be flagged."""
        cut = self._threshold(fpr)
        if cut is not None:
            return cut
        highest = self._highest
        lower = [side[at - 1] for side in self._sides if (at := int(np.searchsorted(side, highest)))]
        # half a step above: a mean of such values must not equal a score
        above = highest + ((highest - float(max(lower))) if lower else 1.0) / 2
        return max(above, math.nextafter(highest, math.inf))  # beside a very large score, a half is nothing

    def members_in_top(self, count: int) -> int | None:
        """How many of so many highest scores are members'; None if that depends on the order of tied scores."""
        inside, outside = self.inside[::-1], self.outside[::-1]  # falling
        possible = range(max(0, count - len(outside)), min(count, len(inside)))
        # the first number of members at which one more would be beaten by the last of the non-members that were taken
        taken = possible.start + bisect_left(possible, True, key=lambda i: bool(inside[i] <= outside[count - i - 1]))
        rest = count - taken
        last = [*inside[:taken][-1:], *outside[:rest][-1:]]
        following = [*inside[taken : taken + 1], *outside[rest : rest + 1]]
        return None if last and following and min(last) == max(following) else taken

    @property
    def _sides(self) -> list[FloatArray]:
        return [side for side in (self.inside, self.outside) if len(side)]

    @property
    def _highest(self) -> float:
        return float(max(side[-1] for side in self._sides))

    def _threshold(self, fpr: float) -> float | None:
        """The lowest score from which on at most the allowed non-members are flagged; None if there is none."""
        allowed = allowed_wrong(fpr, len(self.outside))
        if allowed >= len(self.outside):
            return float(min(side[0] for side in self._sides))
        refused = self.outside[len(self.outside) - 1 - allowed]
        higher = [side[at] for side in self._sides if (at := int(np.searchsorted(side, refused, "right"))) < len(side)]
        return float(min(higher)) if higher else None


def _reaching(ranked: FloatArray, cut: float) -> int:
    """How many sorted scores are at least the cut."""
    return len(ranked) - int(np.searchsorted(ranked, cut))
