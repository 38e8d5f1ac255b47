"""Tables with one row for each model and record, from csv and parquet files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import FloatArray, IntArray, TextArray
from glasshouse.errors import InputError
from glasshouse.evidence.outputs import Arrays
from glasshouse.evidence.table_files import read_text_table

__all__ = ["as_flags", "read_columns", "tidy_arrays"]

_TRUE = {"1", "true", "yes", "1.0"}
_FALSE = {"0", "false", "no", "0.0"}
_UNKNOWN = {"", "none", "nan", "null"}


def read_columns(path: Path) -> dict[str, TextArray]:
    """The columns of a csv or parquet file, as strings; numbers are read where they are used."""
    return {name: np.array(cells) for name, cells in read_text_table(path).columns.items()}


def tidy_arrays(columns: dict[str, TextArray], path: Path) -> Arrays:
    """Arrays as an npz file holds them, from columns ``model, id, member, label`` and the outputs.

    Example:
        >>> columns = {
        ...     "model": ["target", "target", "s0", "s0"], "id": ["a", "b", "b", "a"],
        ...     "member": ["", "", "1", "0"], "loss": ["0.1", "0.2", "0.3", "0.4"],
        ... }
        >>> arrays = tidy_arrays({name: np.array(values) for name, values in columns.items()}, Path("x.csv"))
        >>> arrays["shadow_loss"], arrays["ids"]
        (array([[0.4, 0.3]]), array(['a', 'b'], dtype='<U1'))
    """
    kind, names = _output_columns(columns, path)
    missing = [name for name in ("model", "id", "member") if name not in columns]
    if missing:
        raise InputError(f"{path}: the column {missing[0]!r} is missing; the table needs model, id, member and {kind}.")
    outputs = np.stack([_numbers(columns[name], name, path) for name in names], axis=1)
    outputs = outputs[:, 0] if kind == "loss" else outputs
    rows_of = {name: np.flatnonzero(columns["model"] == name) for name in dict.fromkeys(columns["model"].tolist())}
    if "target" not in rows_of:
        raise InputError(f"{path}: model: no row is named 'target'; give the target's rows this name.")
    target = rows_of.pop("target")
    ids = columns["id"]
    order = {name: _in_order(ids[rows], ids[target], rows, name, path) for name, rows in rows_of.items()}
    member = as_flags(columns["member"], place=f"{path}: member")
    unknown = np.array([row for rows in order.values() for row in rows[member[rows] < 0]], dtype=np.int64)
    if len(unknown):
        raise InputError(f"{path}: member: empty for record {str(ids[unknown[0]])!r} of a shadow model; write 1 or 0.")
    arrays: Arrays = {f"target_{kind}": outputs[target], "ids": ids[target]}
    if order:  # the rows of every model are now in the target's order
        arrays[f"shadow_{kind}"] = np.stack([outputs[rows] for rows in order.values()])
        arrays["shadow_members"] = np.stack([member[rows] == 1 for rows in order.values()])
    if (member[target] >= 0).all():
        arrays["members"] = member[target] == 1
    if "label" in columns:
        labels = columns["label"][target]
        arrays["labels"] = labels if kind == "loss" and not _numeric(labels) else _numbers(labels, "label", path)
    return arrays


def _output_columns(columns: dict[str, Any], path: Path) -> tuple[str, list[str]]:
    """The kind of output in the table, and its columns in the order of the classes."""
    if "loss" in columns:
        return "loss", ["loss"]
    for kind, stem in (("logits", "logit"), ("probabilities", "probability")):
        found = sorted((int(match[1]), name) for name in columns if (match := re.fullmatch(stem + r"_(\d+)", name)))
        if found:
            if [number for number, _ in found] != list(range(len(found))):
                raise InputError(f"{path}: the columns {stem}_0, {stem}_1, … have a gap; give one per class.")
            return kind, [name for _, name in found]
    raise InputError(f"{path}: there is no column named loss, logit_0, … or probability_0, …; give one kind.")


def _in_order(ids: NDArray[Any], wanted: NDArray[Any], rows: NDArray[Any], model: str, path: Path) -> NDArray[Any]:
    """Rows of one model in the target's order of records."""
    place = dict(zip(ids.tolist(), rows.tolist(), strict=True))
    if len(place) != len(rows):
        raise InputError(f"{path}: model {model!r} has a record twice; give one row for each model and record.")
    lost = [name for name in wanted.tolist() if name not in place]
    if lost or len(place) != len(set(wanted.tolist())):
        name = lost[0] if lost else next(name for name in place if name not in set(wanted.tolist()))
        raise InputError(f"{path}: record {name!r} is not in both the target's rows and those of model {model!r}.")
    return np.array([place[name] for name in wanted.tolist()])


def as_flags(values: TextArray, *, place: str) -> IntArray:
    """1 for 1, true and yes, 0 for 0, false and no, -1 for an empty cell; [rows].

    Example:
        >>> as_flags(np.array(["True", "no", ""]), place="people.csv: member")
        array([ 1,  0, -1])
    """
    words = np.char.lower(np.char.strip(values.astype(str)))
    found = np.where(np.isin(words, list(_TRUE)), 1, np.where(np.isin(words, list(_FALSE)), 0, -1))
    strange = (found < 0) & ~np.isin(words, list(_UNKNOWN))
    if strange.any():
        raise InputError(f"{place}: {str(values[strange][0])!r} is neither 1 nor 0.")
    return found


def _numeric(values: TextArray) -> bool:
    try:
        values.astype(np.float64)
    except ValueError:
        return False
    return True


def _numbers(values: TextArray, name: str, path: Path) -> FloatArray:
    try:
        return values.astype(np.float64)
    except ValueError:
        wrong = next(value for value in values.tolist() if not _numeric(np.array([value])))
        raise InputError(f"{path}: {name}: {wrong!r} is not a number.") from None
