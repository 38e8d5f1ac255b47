"""Datasets of torch and of Hugging Face, read into arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from glasshouse.errors import InputError
from glasshouse.population.stacking import stacked

__all__ = ["from_hugging_face", "from_torch", "known_classes"]

_LOOK = 4  # items that are read twice: they must be the same


def from_torch(dataset: Dataset[Any], y: Any) -> tuple[Any, Any]:
    """All items of a dataset: features, and labels if items are pairs (x, y); a dict of columns if items are dicts.

    Example:
        >>> x, y = from_torch(TensorDataset(torch.zeros(3, 2), torch.tensor([0, 1, 0])), None)
        >>> x.shape, y.tolist()
        (torch.Size([3, 2]), [0, 1, 0])
    """
    if isinstance(dataset, TensorDataset) and len(dataset.tensors) == 2 and y is None:
        return dataset.tensors[0], dataset.tensors[1]
    if not hasattr(dataset, "__len__"):
        raise InputError(f"population: {type(dataset).__name__} has no length; define __len__ and __getitem__.")
    count = len(dataset)
    if not count:
        raise InputError(f"population: {type(dataset).__name__} has no records.")
    items = [dataset[number] for number in range(count)]
    for number in range(min(count, _LOOK)):
        if not _equal(items[number], dataset[number]):
            raise InputError(
                f"population: item {number} of {type(dataset).__name__} is another one each time it is read, as with a "
                f"random augmentation. Give the dataset without it; TorchTrainer(augmentation=…) takes one."
            )
    if all(isinstance(item, Mapping) for item in items):
        return {name: stacked([item[name] for item in items], place=f"population: {name}") for name in items[0]}, y
    if y is not None:
        raise InputError(
            "population: items of a dataset are pairs (x, y), which hold their labels; leave the labels out: "
            "Population(dataset)."
        )
    for number, item in enumerate(items):
        if not isinstance(item, tuple | list) or len(item) != 2:
            shown = f"{len(item)} parts" if isinstance(item, tuple | list) else type(item).__name__
            raise InputError(
                f"population: item {number} of {type(dataset).__name__} is not a pair (x, y) but {shown}; give x as a "
                f"dict if a model has several inputs."
            )
    features, labels = ([item[part] for item in items] for part in (0, 1))
    if isinstance(features[0], Mapping):
        names = list(features[0])
        found = {name: stacked([one[name] for one in features], place=f"population: {name}") for name in names}
        return found, _labels(labels)
    return stacked(features, place="population"), _labels(labels)


def from_hugging_face(dataset: Any, names: Sequence[str]) -> dict[str, Any]:
    """Columns of a Hugging Face dataset as arrays, in their own precision; texts are objects."""
    table = dataset.select_columns(list(names)).with_format("arrow")[:]
    return {name: _arrow(table[name], dataset, name) for name in names}


def known_classes(dataset: Any, y: Any) -> Any:
    """All classes of a label column, if the dataset knows them; None if not."""
    feature = dataset.features.get(y) if isinstance(y, str) else None
    count = getattr(feature, "num_classes", None)
    return None if count is None else np.arange(count)


def _arrow(column: Any, dataset: Any, name: str) -> Any:
    import pyarrow

    whole = column.combine_chunks()
    if pyarrow.types.is_list(whole.type) or pyarrow.types.is_large_list(whole.type):
        if pyarrow.types.is_primitive(whole.type.value_type):
            return _lists(whole, name)
    elif not pyarrow.types.is_nested(whole.type) and not isinstance(whole.type, pyarrow.BaseExtensionType):
        return whole.to_numpy(zero_copy_only=False)
    found = dataset.select_columns([name]).with_format("numpy")[:][name]  # images and arrays of more dimensions
    return stacked(list(found) if found.dtype.kind == "O" else found, place=f"population: {name}")


def _lists(column: Any, name: str) -> Any:
    """[N, length] of a column of lists of numbers."""
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != lengths[0])  # a missing list has the length NaN
    if len(wrong):
        raise InputError(
            f"population: {name}: record {wrong[0]} has length {lengths[wrong[0]]:.0f}, but record 0 has "
            f"{lengths[0]:.0f}; pad them to one length, such as tokenizer(texts, padding='max_length')."
        )
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _labels(labels: list[Any]) -> Any:
    if all(isinstance(one, Tensor) for one in labels):
        return torch.stack([one.reshape(()) if one.numel() == 1 else one for one in labels])
    return [one.item() if isinstance(one, Tensor) and one.numel() == 1 else one for one in labels]


def _equal(first: Any, second: Any) -> bool:
    """Whether an item that was read twice is the same."""
    if isinstance(first, Mapping):
        return all(_equal(first[name], second[name]) for name in first)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(_equal, first, second))
    if isinstance(first, Tensor):
        return torch.equal(torch.nan_to_num(first), torch.nan_to_num(second))
    if isinstance(first, np.ndarray) and first.dtype != object:
        return bool(first.tobytes() == second.tobytes())
    return bool(first == second) if isinstance(first, str | int) else True
