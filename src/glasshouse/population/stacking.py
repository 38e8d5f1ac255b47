"""One array from records that come one by one, or as lists: numbers, tensors or texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glasshouse.errors import InputError

__all__ = ["stacked"]


def stacked(values: Any, *, place: str) -> Any:
    """An array or a tensor with one row per record, [N, ...]; texts become objects, of which each has its own length.

    Example:
        >>> stacked([[1, 2], [3, 4]], place="population").shape, stacked(["a", "bcd"], place="population")
        ((2, 2), array(['a', 'bcd'], dtype=object))
        >>> stacked([[1, 2], [3]], place="population: input_ids")
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: input_ids: record 1 has length 1, but record 0 has 2; pad them to ...
    """
    if isinstance(values, list | tuple):
        values = _of_list(values, place)
    elif type(values).__name__ == "Series":  # one column of a data frame
        column = values.to_numpy()
        values = column if column.dtype != object else _of_list(column.tolist(), place)
    if hasattr(values, "tocsr") and not hasattr(values, "indptr"):
        values = values.tocsr()  # a kind without rows by number
    if not hasattr(values, "shape") or not hasattr(values, "__getitem__") or isinstance(values, str):
        raise InputError(
            f"{place}: {type(values).__name__} does not hold records. Give an array, a tensor, a list of texts, a data "
            f"frame, a dict of arrays or a dataset; a file is read first, as with pandas.read_csv."
        )
    if getattr(getattr(values, "dtype", None), "kind", "f") in "VMmcS":
        raise InputError(f"{place}: records are of type {values.dtype}; give numbers or texts.")
    if not len(values.shape) or not values.shape[0]:
        raise InputError(f"{place}: there are no records.")
    return values


def _of_list(values: Sequence[Any], place: str) -> Any:
    first = values[0] if len(values) else None
    if isinstance(first, str):
        wrong = next((number for number, one in enumerate(values) if not isinstance(one, str)), None)
        if wrong is not None:
            raise InputError(
                f"{place}: record {wrong} is {values[wrong]!r}, but record 0 is a text; give a text for every record."
            )
        return _objects(values)
    if isinstance(first, Mapping):
        raise InputError(f"{place}: a list of dicts; give one dict of arrays, or a table: pandas.DataFrame(records).")
    if type(first).__module__.startswith("PIL."):
        raise InputError(
            f"{place}: records are images of PIL; give numbers, for a torchvision dataset with "
            f"transform=torchvision.transforms.ToTensor()."
        )
    _refuse_other_lengths(values, place)
    if isinstance(first, Tensor):
        return torch.stack(list(values))
    if isinstance(first, list | tuple) and any(isinstance(one, str) for one in first):
        return np.array(values, dtype=object)
    return np.asarray(values)


def _objects(values: Sequence[Any]) -> Any:
    """[N] objects: a fixed-width array would give every text the room of the longest one."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _refuse_other_lengths(values: Sequence[Any], place: str) -> None:
    """Refuse records of different shapes, as token numbers without padding."""
    shapes = [getattr(one, "shape", None) or (len(one) if isinstance(one, list | tuple) else ()) for one in values]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            what = "length" if isinstance(shape, int) else "shape"
            shown = [tuple(one) if not isinstance(one, int) else one for one in (shape, shapes[0])]
            raise InputError(
                f"{place}: record {number} has {what} {shown[0]}, but record 0 has {shown[1]}; pad them to one length, "
                f"such as tokenizer(texts, padding=True), or leave such records out."
            )
