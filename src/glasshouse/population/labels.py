"""Labels of any kind as an array; a missing one is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.population.kinds import is_missing

__all__ = ["as_labels", "listed", "one_column", "short_texts"]

_EMPTY = ("", "nan", "<NA>", "NaT")  # what numpy and pandas make of an empty cell when they write it as text
_LONGEST = 256  # characters of an id or a label: numpy keeps every text as long as the longest one


def as_labels(given: Any) -> NDArray[Any]:
    """Labels as an array of one type, [N]: a list, an array, a tensor, or a column of pandas or polars.

    Example:
        >>> as_labels(["yes", "no"])
        array(['yes', 'no'], dtype='<U3')
        >>> as_labels(["yes", None])
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: the label of record 1 is missing (None). Leave such records out, or...
    """
    values = listed(given)
    if values.ndim != 1:
        return values
    if values.dtype == object:
        missing = np.fromiter((is_missing(value) for value in values), dtype=np.bool_, count=len(values))
        _refuse(missing, values)
        values = _one_type(values)
    if values.dtype.kind == "f":
        _refuse(np.isnan(values), values)
    if values.dtype.kind == "U":
        _refuse(np.isin(np.char.strip(values), _EMPTY), values)
    return values


def listed(given: Any) -> NDArray[Any]:
    """A list, an array, a tensor or a column as an array; mixed values stay objects, and no text is cut or widened.

    Example:
        >>> listed(["a", None])
        array(['a', None], dtype=object)
    """
    if isinstance(given, list | tuple | set | frozenset):
        given = list(given)
        try:
            values = np.array(given, dtype=object)
        except ValueError:  # arrays of different shapes
            values = np.empty(len(given), dtype=object)
            values[:] = given
        if values.ndim == 1 and len(values) and not any(isinstance(one, str) or is_missing(one) for one in given):
            return np.asarray(given)  # numbers, whatever mixture
        return values if values.ndim == 1 else np.asarray(given)
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    return np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)


def one_column(given: NDArray[Any]) -> str:
    """What to write for labels of two dimensions: of one-hot rows the column of the one, of several targets one.

    Example:
        >>> one_column(np.eye(2)), one_column(np.zeros((2, 1)))
        ('y.argmax(axis=1)', 'y.ravel()')
        >>> one_column(np.ones((2, 3)))
        'y[:, 0], and audit several targets one by one'
    """
    if given.ndim < 2 or given.size == len(given):
        return "y.ravel()"
    if given.dtype.kind in "biuf" and np.isin(given, (0, 1)).all() and (given.sum(axis=1) == 1).all():
        return "y.argmax(axis=1)"
    return "y[:, 0], and audit several targets one by one"


def short_texts(values: Sequence[str], *, place: str, what: str) -> NDArray[np.str_]:
    """Texts as an array, [N]; one that is far too long for a name is refused, since all would take as much memory.

    Example:
        >>> short_texts(["ann", "x" * 1000], place="population", what="id")
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: the id of record 1 has 1000 characters, ...
    """
    lengths = [len(value) for value in values]
    if lengths and max(lengths) > _LONGEST:
        first = int(np.argmax(np.asarray(lengths) > _LONGEST))
        raise InputError(
            f"{place}: the {what} of record {first} has {lengths[first]} characters, and {_LONGEST} is the most. Is "
            f"this the right column?"
        )
    return np.array(values, dtype=np.str_)


def _one_type(values: NDArray[Any]) -> NDArray[Any]:
    """Objects [N] as text or numbers if all of them are; other objects stay what they are."""
    kinds = set(map(type, values.tolist()))
    if all(issubclass(kind, str) for kind in kinds):
        return short_texts(values.tolist(), place="population", what="label")
    if any(issubclass(kind, str) for kind in kinds):
        text = next(place for place, value in enumerate(values) if isinstance(value, str))
        other = next(place for place, value in enumerate(values) if not isinstance(value, str))
        raise InputError(
            f"population: labels are of several types (record {text} has {values[text]!r}, record {other} has "
            f"{values[other]!r}); write all of them as text, or all as numbers."
        )
    if all(issubclass(kind, bool | int | float | np.bool_ | np.number) for kind in kinds):
        return np.asarray(values.tolist())
    try:
        sorted(values.tolist())
    except TypeError:
        name = type(values[0]).__name__
        raise InputError(
            f"population: labels of type {name} cannot be put in an order, which classes need; write them as text."
        ) from None
    return values


def _refuse(missing: NDArray[np.bool_], values: NDArray[Any]) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        more = f" and of {len(rows) - 1} more" if len(rows) > 1 else ""
        value = values[rows[0]]
        shown = value.item() if isinstance(value, np.generic) else value
        raise InputError(
            f"population: the label of record {rows[0]}{more} is missing ({shown!r}). Leave such records out, or give "
            f"them a label."
        )
