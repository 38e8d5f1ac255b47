"""Ids, labels and targets of any kind as arrays, a missing one refused; and libraries known without an import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, TextArray, as_array
from glasshouse.core.errors import InputError

_FEW = 20  # different numbers that may well be classes, whatever they are
_RECORDS_EACH = 3  # on average, of a class that a model can learn
_EMPTY = ("", "nan", "<NA>", "NaT")  # what numpy and pandas make of an empty cell when they write it as text
_LONGEST = 256  # characters of an id or a label: numpy keeps every text as long as the longest one


def as_targets(given: NDArray[Any], classes: ArrayLike | None = None) -> FloatArray:
    """Targets of a regression as float64, [N]: finite numbers that are not all equal."""
    if classes is not None:
        raise InputError("population: a regression has no classes; leave out classes, or regression=True.")
    if given.dtype.kind not in "iuf":
        raise InputError(
            f"population: a regression predicts real numbers, but the targets are of type {given.dtype}; leave out "
            f"regression=True for classes."
        )
    targets = given.astype(np.float64)
    if len(np.unique(targets)) < 2:
        raise InputError("population: all records have the same target; a regression needs two or more.")
    return targets


def check_classes(given: NDArray[Any], *, say: str = "Population(x, y, regression=True)") -> None:
    """Refuse numbers that look like the targets of a regression, and would become hundreds of classes.

    They do if there are more than 20 different ones, and some are not whole or most occur hardly more than once;
    ``say`` is how the user says that it is a regression.
    """
    if given.dtype.kind not in "iuf":
        return
    values = np.unique(given)
    whole = given.dtype.kind in "iu" or bool((values == np.floor(values)).all())
    if len(values) <= _FEW or (whole and len(given) >= _RECORDS_EACH * len(values)):
        return
    first, second = (f"{value:.6g}" for value in values[:2].tolist())
    raise InputError(
        f"population: the labels are {len(values)} different numbers, such as {first} and {second}, which look like "
        f"the targets of a regression. Say {say}; if each is a class, regression=False."
    )


def comes_from(value: Any, library: str) -> bool:
    """Whether an object's class, or one that it inherits from, belongs to a library."""
    return any(base.__module__.partition(".")[0] == library for base in type(value).__mro__)


def is_frame(value: Any) -> bool:
    """Whether an object is a data frame of pandas or polars."""
    return type(value).__name__ == "DataFrame" and (comes_from(value, "pandas") or comes_from(value, "polars"))


def is_missing(value: Any) -> bool:
    """Whether one cell of a table is empty: None, NaN, and what pandas writes for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value  # numpy's float64 is a float too


def as_labels(given: Any) -> NDArray[Any]:
    """Labels as an array of one type, [N]: a list, an array, a tensor, or a column of pandas or polars."""
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
    """A list, an array, a tensor or a column as an array; mixed values stay objects, and no text is cut or widened."""
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
    return as_array(given.to_numpy() if hasattr(given, "to_numpy") else given)


def one_column(given: NDArray[Any]) -> str:
    """What to write for labels of two dimensions: of one-hot rows the column of the one, of several targets one."""
    if given.ndim < 2 or given.size == len(given):
        return "y.ravel()"
    if given.dtype.kind in "biuf" and np.isin(given, (0, 1)).all() and (given.sum(axis=1) == 1).all():
        return "y.argmax(axis=1)"
    return "y[:, 0], and audit several targets one by one"


def short_texts(values: Sequence[str], *, place: str, what: str) -> NDArray[np.str_]:
    """Texts as an array, [N]; one that is far too long for a name is refused, since all would take as much memory."""
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


def as_ids(ids: Sequence[Any] | NDArray[Any] | None, count: int, *, place: str) -> TextArray:
    """Record ids as strings, [N]: unique and not empty; positions if none are given."""
    if ids is None:
        return np.arange(count).astype(f"<U{len(str(count))}")
    names = listed(ids)
    if names.shape != (count,):
        raise InputError(
            f"{place}: ids have shape {names.shape}, but there are {count} records; give one id per record."
        )
    missing = np.zeros(count, dtype=np.bool_)
    if names.dtype.kind == "U" and (longest := int(np.char.str_len(names).max(initial=1))) <= _LONGEST:
        names = names.astype(f"<U{max(longest, 1)}")  # without a Python text for each of a million
    elif names.dtype.kind not in "iub":
        given = names.tolist()
        missing = np.array([is_missing(name) for name in given], dtype=np.bool_)
        names = short_texts([str(name) for name in given], place=place, what="id")
    names = names.astype(str, copy=False)
    missing |= np.char.strip(names) == ""
    if missing.any():
        raise InputError(f"{place}: record {first_of(missing)} has no id; every record needs one.")
    unique, counts = np.unique(names, return_counts=True)
    if len(unique) != count:
        raise InputError(
            f"{place}: id {str(unique[counts > 1][0])!r} is repeated; every record needs its own id. "
            "If it names a person with several records, give it as unit."
        )
    return names


def first_of(mask: BoolArray) -> int:
    """The position of the first true entry."""
    return int(np.flatnonzero(mask)[0])


def joined_ids(train: TextArray, holdout: TextArray) -> TextArray:
    """Ids of two parts in one array; if both are only numbered, with the name of their part in front."""
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
