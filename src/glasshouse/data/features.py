"""Features of any kind as arrays: how many, some rows, joined, plain parts; and records that are not rows."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.optional import is_made_by, is_tensor
from glasshouse.data.labels import comes_from, is_frame, is_missing


@runtime_checkable
class Records(Protocol):
    """Records that are not rows of an array; `glasshouse.graph` has one for lists of graphs."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N,)``."""

    @property
    def advice(self) -> str:
        """What to write where a list of such records is given in place of a population."""

    def __getitem__(self, rows: Any) -> Any:
        """Some of the records, by mask [N] or by positions; one of them by its position."""

    def labels(self) -> NDArray[Any]:
        """[N] the labels that the records themselves hold."""

    def contents(self) -> Iterator[bytes]:
        """Of each record, all that a model may see: equal for equal records."""

    def features(self) -> FloatArray:
        """[N, F] numbers about the records, for the test whether members were drawn at random."""

    def batches(self, size: int) -> Iterator[IntArray]:
        """Positions of records that are asked about in one batch, at most ``size``; all of them, in order."""

    def asker(self, model: Callable[..., Any], *, device: str | None) -> Callable[[Any], Any]:
        """A function that asks a model about a batch, which is a part of these records."""


# libraries whose objects a later room makes records of; it is imported when the first of them is given
_ROOMS = {"torch_geometric": "glasshouse.graph.data.graph_list"}
_MAKERS: dict[type, Callable[[Any], Records]] = {}


def register_records(kind: type, make: Callable[[Any], Records]) -> None:
    """Let populations be made of objects of this kind, or of lists and datasets of them."""
    _MAKERS[kind] = make


def recognised(x: Any) -> Records | None:
    """A container of registered records, if ``x`` is one or holds them."""
    if isinstance(x, Records):
        return x
    listed = isinstance(x, list | tuple) or is_made_by(x, "torch.utils.data", "Dataset")
    readable = listed and isinstance(x, Sized) and len(x) > 0  # one by one
    make = _maker(x) or (_maker(x[0]) if readable else None)
    return None if make is None else make(x)


def row_batches(x: Any, count: int, size: int) -> Iterator[IntArray]:
    """Positions of the records of each query: ``size`` at a time, or as their container wants."""
    if isinstance(x, Records):
        yield from x.batches(size)
        return
    for start in range(0, count, size):
        yield np.arange(start, min(start + size, count))


def _maker(one: Any) -> Callable[[Any], Records] | None:
    for library, room in _ROOMS.items():
        if comes_from(one, library):
            importlib.import_module(room)
    return next((_MAKERS[kind] for kind in type(one).__mro__ if kind in _MAKERS), None)


def count_records(x: Any) -> int:
    """N, the number of records in features of any kind."""
    return int((next(iter(x.values())) if isinstance(x, Mapping) else x).shape[0])


def select(x: Any, rows: NDArray[Any]) -> Any:
    """Rows of anything a population may hold, by mask or by index; a dict of arrays gives a dict."""
    if isinstance(x, Mapping):
        return {name: select(values, rows) for name, values in x.items()}
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    if is_frame(x):  # polars takes a mask for a choice of columns
        return x[np.flatnonzero(rows) if rows.dtype == np.bool_ else rows]
    return x[rows]


def joined(first: Any, second: Any) -> Any:
    """The records of both, [N + M, ...], in the form of the first."""
    if _form(first) != _form(second):
        raise InputError(
            f"from_parts: the features of train are of type {type(first).__name__} and those of holdout of type "
            f"{type(second).__name__}; give both in the same form."
        )
    if isinstance(first, Records):
        return recognised([*first, *second])  # type: ignore[misc]  # by position, as any sequence
    if isinstance(first, Mapping):
        second = _same_columns(first, second)
        return {name: joined(first[name], second[name]) for name in first}
    if is_frame(first):
        second = _same_columns(first, second)
        if hasattr(first, "iloc"):
            return _joined_pandas(first, second)
        import polars

        return polars.concat([first, second], how="vertical_relaxed")
    if first.shape[1:] != second.shape[1:]:
        raise InputError(
            f"from_parts: one record has the shape {tuple(first.shape[1:])} in train and {tuple(second.shape[1:])} in "
            f"holdout; prepare both in the same way."
        )
    if hasattr(first, "tocsr"):
        import scipy.sparse

        return scipy.sparse.vstack([first, second], format="csr")
    if is_tensor(first):
        import torch

        return torch.cat([first, second.to(first.device)])
    texts = [one.dtype.kind in "OU" for one in (first, second)]
    if texts[0] != texts[1]:
        raise InputError("from_parts: one part holds text and the other numbers; prepare both in the same way.")
    both = (first, second) if not texts[0] else (first.astype(object), second.astype(object))
    return np.concatenate(both)


def check_order(given: Any, x: Any, *, place: str) -> None:
    """Refuse a column of pandas whose index has the frame's rows in another order or in part; a new index passes."""
    if type(given).__name__ != "Series" or not hasattr(x, "iloc") or not hasattr(given, "iloc"):
        return
    if given.index.equals(x.index) or (own := set(given.index)).isdisjoint(x.index):
        return
    if own == set(x.index):
        raise InputError(
            f"{place}: their index has the rows of the data frame in another order. Use .loc[frame.index] to put them "
            f"in the frame's order, or .to_numpy() if they are in it already."
        )
    if len(given) == len(x):  # of another length it is refused later, whatever its index
        raise InputError(
            f"{place}: their index has only {len(own & set(x.index))} of the {len(x)} rows of the data frame, so they "
            f"seem to belong to other rows. Take them from the same table, or use .to_numpy() if they are in its order."
        )


def plain_parts(x: Any) -> list[Any]:
    """Features as plain arrays with one row per record, the same whichever library held them; for hashes.

    A table of numbers is one array. Of other tables, the numbers are one array and every other column is one more.
    """
    if isinstance(x, Mapping):
        names = sorted(x)
        return [part for name in names for part in (np.full(count_records(x), name), *plain_parts(x[name]))]
    if not is_frame(x):
        return [x]
    numbers = [name for name in x.columns if _numeric(x[name])]
    parts = [table_of_numbers(x, numbers)] if numbers else []
    known = set(numbers)
    return parts + [_texts(x[name]) for name in x.columns if name not in known]


def table_of_numbers(frame: Any, names: Any) -> NDArray[Any]:
    """Columns of a data frame as one array [N, F]: truth values are 1 and 0, and an empty cell is NaN."""
    columns = [_numbers(frame[name]) for name in names]
    kind = np.result_type(*{column.dtype for column in columns})
    table = np.empty((len(columns[0]), len(columns)), dtype=kind)
    for place, column in enumerate(columns):
        table[:, place] = column
    return table


def _numbers(column: Any) -> NDArray[Any]:
    values = np.asarray(column.to_numpy())
    if values.dtype != object:
        return values
    if any(isinstance(value, str) for value in values):  # float("1") would read it
        raise TypeError("text is not a number")
    # of a type that numpy does not have, as decimals or truth values with empty cells
    return np.array([np.nan if is_missing(value) else float(value) for value in values])


def _numeric(column: Any) -> bool:
    """Whether a column of a data frame holds numbers or truth values, in pandas or polars."""
    kind = column.dtype
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    return getattr(kind, "kind", "O") in "iufb"


def _texts(column: Any) -> NDArray[Any]:
    """A column [N] as text objects; an empty cell is an empty text in every library."""
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null(), dtype=np.bool_)
    texts = np.array([str(value) for value in column.to_list()], dtype=object)
    texts[missing] = ""
    return texts


def _form(x: Any) -> Any:
    """What two parts must agree in: the kind of a container or of a table, or whether it is sparse, or a tensor."""
    return type(x) if isinstance(x, Records | Mapping) or is_frame(x) else (hasattr(x, "tocsr"), is_tensor(x))


def _same_columns(first: Any, second: Any) -> Any:
    """The second with the columns of the first in the same order; what does not fit is refused."""
    # in the order of the columns, without a look at all of them for each
    names, others = (dict.fromkeys(one if isinstance(one, Mapping) else one.columns) for one in (first, second))
    for known, place, own, other in ((others, "holdout", names, "train"), (names, "train", others, "holdout")):
        if lost := [name for name in own if name not in known]:
            raise InputError(f"from_parts: {place} has no column {lost[0]!r}, which {other} has.")
    return second if isinstance(second, Mapping) else second[list(names)]


def _joined_pandas(first: Any, second: Any) -> Any:
    import pandas

    found = pandas.concat([first, second], ignore_index=True)
    for name in first.columns:  # categories that differ would become plain text
        kinds = [one[name].dtype for one in (first, second)]
        if all(isinstance(kind, pandas.CategoricalDtype) for kind in kinds) and kinds[0] != kinds[1]:
            both = pandas.api.types.union_categoricals([first[name], second[name]], ignore_order=True)
            found[name] = both
    return found


def stacked(values: Any, *, place: str) -> Any:
    """An array or a tensor with one row per record, [N, ...]; texts become objects, each of its own length."""
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
        array = np.empty(len(values), dtype=object)  # of a fixed width, each would take the room of the longest one
        array[:] = values
        return array
    if isinstance(first, Mapping):
        raise InputError(f"{place}: a list of dicts; give one dict of arrays, or a table: pandas.DataFrame(records).")
    if type(first).__module__.startswith("PIL."):
        raise InputError(
            f"{place}: records are images of PIL; give numbers, for a torchvision dataset with "
            f"transform=torchvision.transforms.ToTensor()."
        )
    _refuse_other_lengths(values, place)
    if is_tensor(first):
        import torch

        return torch.stack(list(values))
    if isinstance(first, list | tuple) and any(isinstance(one, str) for one in first):
        return np.array(values, dtype=object)
    return np.asarray(values)


def _refuse_other_lengths(values: Sequence[Any], place: str) -> None:
    """Refuse records of different shapes, as token numbers without padding."""
    shapes = [getattr(one, "shape", None) or (len(one) if isinstance(one, list | tuple) else ()) for one in values]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            what = "length" if isinstance(shape, int) else "shape"
            shown = [tuple(one) if not isinstance(one, int) else one for one in (shape, shapes[0])]
            raise InputError(
                f"{place}: record {number} has {what} {shown[0]}, but record 0 has {shown[1]}; pad them to one length, "
                f"such as tokenizer(texts, padding=True), or with their lengths for a module of both: "
                f'Population({{"x": pad_sequence(list_of_tensors, batch_first=True), "lengths": lengths}}, y).'
            )
