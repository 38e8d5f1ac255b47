"""From what users have to features, labels and ids: arrays, texts, data frames, dicts of arrays and datasets."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from glasshouse.core.errors import InputError
from glasshouse.core.optional import is_made_by, is_tensor
from glasshouse.core.registry import did_you_mean
from glasshouse.data.features import check_order, recognised, stacked
from glasshouse.data.labels import comes_from, is_frame

_NAMED = ("labels", "ids", "unit")  # what a name of a column may stand for
_LOOK = 4  # items that are read twice: they must be the same


def _from_torch(dataset: Any, y: Any) -> tuple[Any, Any]:
    """All items of a dataset: features, and labels if items are pairs (x, y); a dict of columns if items are dicts."""
    if is_made_by(dataset, "torch.utils.data", "TensorDataset") and len(dataset.tensors) == 2 and y is None:
        return dataset.tensors[0], dataset.tensors[1]
    stream = is_made_by(dataset, "torch.utils.data", "IterableDataset")
    if not stream and not hasattr(dataset, "__len__"):
        raise InputError(f"population: {type(dataset).__name__} has no length; define __len__ and __getitem__.")
    items = list(dataset) if stream else [dataset[number] for number in range(len(dataset))]
    if not items:
        raise InputError(f"population: {type(dataset).__name__} has no records.")
    again = itertools.islice(dataset, _LOOK) if stream else map(dataset.__getitem__, range(min(len(items), _LOOK)))
    for number, item in enumerate(again):
        if not _equal(items[number], item):
            raise InputError(
                f"population: item {number} of {type(dataset).__name__} is another one each time it is read, as with a "
                f"random augmentation. Give the dataset without it; TorchTrainer(augmentation=…) takes one."
            )
    if all(isinstance(item, Mapping) for item in items):
        return _by_name(items), y
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
        return _by_name(features), _labels(labels)
    return stacked(features, place="population"), _labels(labels)


def _by_name(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: stacked([one[name] for one in items], place=f"population: {name}") for name in items[0]}


def _from_hugging_face(dataset: Any, names: Sequence[str]) -> dict[str, Any]:
    """Columns of a Hugging Face dataset as arrays, in their own precision; texts are objects."""
    table = dataset.select_columns(list(names)).with_format("arrow")[:]
    return {name: _arrow(table[name], dataset, name) for name in names}


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
    if all(is_tensor(one) for one in labels):
        import torch

        return torch.stack([one.reshape(()) if one.numel() == 1 else one for one in labels])
    return [one.item() if is_tensor(one) and one.numel() == 1 else one for one in labels]


def _equal(first: Any, second: Any) -> bool:
    """Whether an item that was read twice is the same."""
    if isinstance(first, Mapping):
        return all(_equal(first[name], second[name]) for name in first)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(_equal, first, second))
    if is_tensor(first):
        import torch

        return torch.equal(torch.nan_to_num(first), torch.nan_to_num(second))
    if isinstance(first, np.ndarray) and first.dtype != object:
        return bool(first.tobytes() == second.tobytes())
    return bool(first == second) if isinstance(first, str | int) else True


def opened(
    x: Any, y: Any, *, ids: Any = None, classes: Any = None, leave_out: Sequence[str] = (), unit: Any = None
) -> tuple[Any, ...]:
    """Features, labels, ids, classes and units from any kind of data; a name stands for the column that has it."""
    if is_made_by(x, "torch.utils.data", "DataLoader") and x.collate_fn.__name__ == "default_collate":
        x = x.dataset
    _refuse_what_is_not_records(x)
    if (records := recognised(x)) is not None:
        return records, records.labels() if y is None else y, ids, classes, unit
    if is_made_by(x, "torch.utils.data", "Dataset") and not comes_from(x, "datasets"):
        x, y = _from_torch(x, y)
    if comes_from(x, "datasets"):
        count = getattr(x.features.get(y) if isinstance(y, str) else None, "num_classes", None)
        classes = np.arange(count) if classes is None and count is not None else classes
        given, kept = _split(x, x.column_names, (y, ids, unit), leave_out, lambda n: _from_hugging_face(x, [n])[n])
        y, ids, unit = given
        return _table_or_arrays(_from_hugging_face(x, kept)), y, ids, classes, unit
    if is_frame(x):
        _refuse_repeated(x, y, ids)
        (y, ids, unit), kept = _split(x, list(x.columns), (y, ids, unit), leave_out, x.__getitem__)
        index: Any = getattr(x, "index", None)
        if ids is None and getattr(index, "is_unique", False) and all(isinstance(name, str) for name in index):
            ids = index.to_numpy()  # names of rows; numbers may only be left of an earlier choice
        return x[kept] if len(kept) < len(x.columns) else x, y, ids, classes, unit
    if isinstance(x, Mapping):
        (y, ids, unit), kept = _split(x, list(x), (y, ids, unit), leave_out, x.__getitem__)
        arrays = {name: stacked(x[name], place=f"population: {name}") for name in kept}
        for name, values in arrays.items():
            first = arrays[kept[0]].shape[0]
            if values.shape[0] != first:
                raise InputError(
                    f"population: {name} has {values.shape[0]} records, but {kept[0]} has {first}; give one row per "
                    f"record."
                )
        return arrays, y, ids, classes, unit
    for what, given in (*zip(_NAMED, (y, ids, unit), strict=True), ("leave_out", next(iter(leave_out), None))):
        if isinstance(given, str):
            raise InputError(
                f"population: {what}: {given!r} is the name of a column, but {type(x).__name__} has no named columns; "
                f"give a data frame, or the values."
            )
    if y is None:
        raise InputError("population: labels are missing; give them too: Population(x, y).")
    return stacked(x, place="population"), y, ids, classes, unit


def _check_names(given: Sequence[Any], names: Sequence[Any], what: str) -> None:
    """Refuse names that no column has."""
    known = set(names)
    for name in given:
        if not isinstance(name, Hashable) or name not in known:
            meant = did_you_mean(str(name)[:100], map(str, names)).replace('"', "'")
            shown = ", ".join(str(one) for one in names[:20]) + (", …" if len(names) > 20 else "")
            raise InputError(f"population: {what}: there is no column {name!r}.{meant} Columns: {shown}.")


def _split(
    x: Any, names: list[Any], given: tuple[Any, ...], leave_out: Sequence[str], column: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """Labels, ids and units, as values, and the names of the columns that are features."""
    kind = type(x).__name__
    if isinstance(leave_out, str):
        raise InputError(f"population: leave_out: give a list of names, such as leave_out=[{leave_out!r}].")
    if given[0] is None:
        guess = next((name for name in ("label", "labels", "y", "target") if name in names), names[-1])
        raise InputError(
            f"population: labels are missing; {kind} has columns, so name the one that holds them, such as "
            f"Population(data, {guess!r})."
        )
    taken: list[Any] = list(leave_out)
    for what, one in zip(_NAMED, given, strict=True):
        if isinstance(one, str | int):
            _check_names([one], names, what)
            taken.append(one)
    _check_names(leave_out, names, "leave_out")
    others = set(taken)
    kept = [name for name in names if name not in others]
    if not kept:
        raise InputError(f"population: {kind} has no column of features besides {', '.join(map(repr, taken))}.")
    return [column(one) if isinstance(one, str | int) else one for one in given], kept


def _refuse_repeated(frame: Any, y: Any, ids: Any) -> None:
    """Refuse a frame with two columns of one name, with the labels among the features, or labels in another order."""
    names = list(frame.columns)
    for name in (name for name, count in Counter(names).items() if count > 1):
        raise InputError(f"population: two columns of the data frame are named {name!r}; give each its own name.")
    for what, given in (("labels", y), ("ids", ids)):
        name = getattr(given, "name", None)
        own = np.asarray(given, dtype=object)
        if isinstance(name, str) and name in names and np.array_equal(own, np.asarray(frame[name], dtype=object)):
            shown = f"Population(frame, {name!r})" if what == "labels" else f"ids={name!r}"
            raise InputError(
                f"population: {what}: the column {name!r} is among the features too, so models would learn from it. "
                f"Give its name, {shown}: it is then taken out of the features."
            )
        check_order(given, frame, place=f"population: {what}")


def _refuse_what_is_not_records(x: Any) -> None:
    """One line for what looks like data and is not: loaders, several splits, lazy frames."""
    name = type(x).__name__
    if is_made_by(x, "torch.utils.data", "DataLoader"):  # one that pads batches by itself; see `opened`
        raise InputError(
            "population: the DataLoader makes batches by a collate_fn of its own, and records are needed one by one; "
            "give its dataset, with items of one length: Population(loader.dataset)."
        )
    if name in ("DatasetDict", "IterableDatasetDict") and comes_from(x, "datasets"):
        first, *more = [repr(key) for key in x]
        second = more[0] if more else first
        raise InputError(
            f"population: a {name} holds several splits; give one, such as data[{first}], or two: "
            f"Population.from_parts(Population(data[{first}], …), Population(data[{second}], …))."
        )
    if name == "IterableDataset" and comes_from(x, "datasets"):
        raise InputError(
            "population: a stream has no rows by number; read it first: datasets.Dataset.from_list(list(stream))."
        )
    if comes_from(x, "datasets") and x.format["type"] == "custom":
        raise InputError(
            "population: the dataset has a transform that runs when an item is read, and only its columns are read "
            "here. Apply the transform first, with dataset.map(…)."
        )
    if name == "LazyFrame":
        raise InputError("population: a LazyFrame is not read yet; give frame.collect().")


def _table_or_arrays(columns: dict[str, Any]) -> Any:
    """Columns of a dataset as what they are: one column of text, a table of single values, or arrays by name."""
    single = all(values.ndim == 1 for values in columns.values())
    if len(columns) == 1 and single:
        only = next(iter(columns.values()))
        if only.dtype == object:
            return only
    if not single:
        return columns
    import pandas  # datasets itself needs it

    return pandas.DataFrame(columns)
