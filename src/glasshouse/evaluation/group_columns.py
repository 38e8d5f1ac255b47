"""Columns that divide the records into groups: the user's own, classes, degrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import IntArray
from glasshouse.errors import InputError

__all__ = ["as_groups", "bands"]

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
        glasshouse.errors.InputError: groups: 'sex' has shape (2,), but there are 3 records; give one value per record.
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
        if name in _RESERVED or name.endswith(("_score", "_rank", "_decision", "_fdr", "_steady")):
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
    if present.dtype.kind in "US" and (order := _as_numbers(different)) is not None:
        different, codes = different[order], np.argsort(order)[codes]  # "2" before "10"
        names = [_name(value) for value in different.tolist()]
    if present.dtype.kind in "iuf" and len(different) > _FEW:
        cuts = np.unique(np.quantile(present, (0.25, 0.5, 0.75), method="lower"))
        codes = np.searchsorted(cuts, present, side="left")  # up to and with the quartile
        held, codes = np.unique(codes, return_inverse=True)
        ends = [(present[codes == band].min(), present[codes == band].max()) for band in range(len(held))]
        names = [_name(low) if low == high else f"{_name(low)}–{_name(high)}" for low, high in ends]
    places = np.full(len(values), len(names), dtype=np.int64)
    places[~missing] = codes
    return places, (*names, _MISSING) if missing.any() else tuple(names)


def _as_numbers(texts: NDArray[Any]) -> NDArray[np.intp] | None:
    """The order of texts that are all numbers; None for other texts."""
    try:
        return np.argsort(texts.astype(np.float64), kind="stable")
    except ValueError:
        return None


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as numbers if all of them are, otherwise as text."""
    given = values.tolist()
    if given and all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return np.array(given, dtype=np.float64)
    return np.array([str(value) for value in given], dtype=np.str_)


def _name(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
