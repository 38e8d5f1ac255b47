"""Public records: known not to have trained the target, and what is known about all records without the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.data import Units, as_members

_FEWEST = 20  # public records, and records that are left to be judged on each side


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRecords:
    """Records that an attacker knows not to have trained the target, such as a published test set.

    They are the material of attacks without shadow models, and they are not judged themselves.

    Example:
        >>> column = np.zeros((2, 1))
        >>> public = PublicRecords(loss=np.ones(2), labels=np.array([0, 1]), features=column, audited=column)
        >>> len(public)
        2
    """

    loss: FloatArray  # [P] losses of the target on them
    labels: IntArray  # [P] columns of their classes
    features: FloatArray  # [P, F] what is known about them without the target, as numbers
    audited: FloatArray  # [N, F] the same about the audited records

    def __len__(self) -> int:
        return len(self.loss)


def public_mask(
    public: ArrayLike | None,
    members: BoolArray,
    *,
    seed: int,
    ids: TextArray | None = None,
    units: Units | None = None,
) -> BoolArray:
    """[N] which records are public: a mask, or a share of the non-members that is set aside at random; None for none.

    A member of the target cannot be public. With ``ids`` [N], public records may be given by these. Units are public as
    a whole.
    """
    if units is not None and public is not None:
        if np.ndim(public) == 0:
            inside = units.members(members, place="members")
            return public_mask(public, inside, seed=seed, ids=units.names)[units.rows]
        return units.members(public_mask(public, members, seed=seed, ids=ids), place="public")[units.rows]
    mask, others = np.zeros(len(members), dtype=np.bool_), np.flatnonzero(~members)
    if public is None:
        return mask
    if np.ndim(public) == 0:
        given = np.asarray(public)
        share = float(given) if given.dtype.kind in "fi" else 0.0
        if not 0 < share < 1:
            raise InputError(f"public: {public!r} is not a share; give a number between 0 and 1, or a mask, [N].")
        mask[generator(seed, "public").permutation(others)[: round(share * len(others))]] = True
    else:
        mask = as_members(public, members.shape, place="public", ids=ids)
        if (both := int((mask & members).sum())) > 0:
            raise InputError(
                f"public: {both} of the public records trained the target (members); a public record is known not to. "
                f"Leave them out of the mask."
            )
    if mask.sum() < _FEWEST or len(others) - mask.sum() < _FEWEST:
        raise InputError(
            f"public: {int(mask.sum())} of {len(others)} non-members are public; at least {_FEWEST} are needed to "
            f"learn from, and {_FEWEST} others to be judged."
        )
    return mask
