"""Record ids and membership masks, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import BoolArray, TextArray
from glasshouse.errors import InputError

__all__ = ["as_ids", "as_members", "first_of"]


def as_ids(ids: Sequence[Any] | NDArray[Any] | None, count: int, *, place: str) -> TextArray:
    """Record ids as strings, [N]: unique and not empty; positions if none are given.

    Example:
        >>> as_ids(None, 3, place="evidence").tolist()
        ['0', '1', '2']
    """
    if ids is None:
        return np.arange(count).astype(str)
    names = np.asarray(ids)
    if names.shape != (count,):
        raise InputError(
            f"{place}: ids have shape {names.shape}, but there are {count} records; give one id per record."
        )
    missing = np.array([name is None or name != name for name in names.tolist()], dtype=bool)
    names = names.astype(str)
    missing |= np.char.strip(names) == ""
    if missing.any():
        raise InputError(f"{place}: record {first_of(missing)} has no id; every record needs one.")
    unique, counts = np.unique(names, return_counts=True)
    if len(unique) != count:
        raise InputError(f"{place}: id {str(unique[counts > 1][0])!r} is repeated; every record needs its own id.")
    return names


def as_members(members: ArrayLike, shape: tuple[int, ...], *, place: str) -> BoolArray:
    """A membership mask of the wanted shape, checked: booleans or 0 and 1.

    Example:
        >>> as_members([1, 0], (2,), place="members")
        array([ True, False])
    """
    mask = np.asarray(members)
    if mask.shape != shape:
        numbers = mask.ndim == 1 == len(shape) and mask.dtype.kind in "iu"
        advice = f" From record numbers, make a mask with np.isin(np.arange({shape[0]}), numbers)." if numbers else ""
        raise InputError(f"{place}: shape {mask.shape} does not fit; expected {shape}, one entry per record.{advice}")
    if mask.dtype != np.bool_:
        if mask.dtype.kind not in "iuf" or not np.isin(mask, (0, 1)).all():
            raise InputError(f"{place}: a membership mask holds only true and false (or 1 and 0).")
        mask = mask.astype(np.bool_)
    return mask


def first_of(mask: BoolArray) -> int:
    """The position of the first true entry.

    Example:
        >>> first_of(np.array([False, True, True]))
        1
    """
    return int(np.flatnonzero(mask)[0])
