"""Record ids, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, TextArray
from glasshouse.errors import InputError
from glasshouse.population.kinds import is_missing
from glasshouse.population.labels import listed, short_texts

__all__ = ["as_ids", "first_of", "joined_ids"]


def as_ids(ids: Sequence[Any] | NDArray[Any] | None, count: int, *, place: str) -> TextArray:
    """Record ids as strings, [N]: unique and not empty; positions if none are given.

    Example:
        >>> as_ids(None, 3, place="evidence").tolist()
        ['0', '1', '2']
    """
    if ids is None:
        return np.arange(count).astype(str)
    names = listed(ids)
    if names.shape != (count,):
        raise InputError(
            f"{place}: ids have shape {names.shape}, but there are {count} records; give one id per record."
        )
    given = names.tolist()
    missing = np.array([is_missing(name) for name in given], dtype=bool)
    if names.dtype.kind not in "iub":
        names = short_texts([str(name) for name in given], place=place, what="id")
    names = names.astype(str)
    missing |= np.char.strip(names) == ""
    if missing.any():
        raise InputError(f"{place}: record {first_of(missing)} has no id; every record needs one.")
    unique, counts = np.unique(names, return_counts=True)
    if len(unique) != count:
        raise InputError(f"{place}: id {str(unique[counts > 1][0])!r} is repeated; every record needs its own id.")
    return names


def first_of(mask: BoolArray) -> int:
    """The position of the first true entry.

    Example:
        >>> first_of(np.array([False, True, True]))
        1
    """
    return int(np.flatnonzero(mask)[0])


def joined_ids(train: TextArray, holdout: TextArray) -> TextArray:
    """Ids of two parts in one array; if both are only numbered, with the name of their part in front.

    Example:
        >>> joined_ids(np.array(["0", "1"]), np.array(["0"])).tolist()
        ['train-0', 'train-1', 'holdout-0']
    """
    if all(np.array_equal(part, np.arange(len(part)).astype(str)) for part in (train, holdout)):
        return np.concatenate([np.char.add("train-", train), np.char.add("holdout-", holdout)])
    both = np.intersect1d(train, holdout)
    if len(both):
        more = f" and {len(both) - 1} more ids are" if len(both) > 1 else " is"
        raise InputError(
            f"from_parts: the id {str(both[0])!r}{more} in train and in holdout; a record is in one of them. Leave it "
            f"out of holdout."
        )
    return np.concatenate([train, holdout])
