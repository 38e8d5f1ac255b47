"""The exact ROC: tied scores move together, and no rate is interpolated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.errors import InputError
from glasshouse.numerics import area_under_roc
from glasshouse.population import as_members

__all__ = ["ROC", "allowed_wrong", "auc", "checked", "roc", "tpr_at_fpr"]


@dataclass(frozen=True, eq=False)
class ROC:
    """Every achievable pair of rates, from calling no record a member to calling all of them.

    Args:
        fpr: [P] false-positive rates, rising.
        tpr: [P] true-positive rates.
        thresholds: [P] records scoring at least this are called members; the first is infinite.
        members: how many members were scored.
        non_members: how many others.
    """

    fpr: FloatArray
    tpr: FloatArray
    thresholds: FloatArray
    members: int
    non_members: int

    @property
    def area(self) -> float:
        """The exact area under the curve; ties count half. The same number as `auc`, without another sort.

        Example:
            >>> roc([1.0, 1.0, 1.0], [1, 0, 1]).area
            0.5
        """
        true, false = np.rint(self.tpr * self.members), np.rint(self.fpr * self.non_members)
        below = 2 * self.non_members - false[1:] - false[:-1]  # twice as many as a member of this step scores above
        return float((np.diff(true) * below).sum() / 2 / (self.members * self.non_members))

    def point_at(self, fpr: float) -> int:
        """Index of the point with the largest achievable FPR not above ``fpr``, and the largest TPR there."""
        allowed = allowed_wrong(fpr, self.non_members)
        return int(np.searchsorted(np.rint(self.fpr * self.non_members), allowed, side="right")) - 1


def allowed_wrong(fpr: float, non_members: int) -> int:
    """How many non-members may be wrongly accused at a rate; 3 of 300 at 0.01, although 0.01 is not exactly 1/100.

    Example:
        >>> allowed_wrong(0.01, 300), allowed_wrong(0.001, 1500)
        (3, 1)
    """
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
    values = given.astype(np.float64)
    if values.ndim != 1:
        raise InputError(f"scores: shape {values.shape}; expected [N].")
    mask = as_members(members, values.shape, place="members")
    if np.isnan(values).any():
        raise InputError(f"scores: record at position {int(np.flatnonzero(np.isnan(values))[0])} has the score NaN.")
    if mask.all() or not mask.any():
        kind = "members" if mask.any() else "non-members"
        raise InputError(f"members: all {len(mask)} records are {kind}; rates need both kinds.")
    return values, mask
