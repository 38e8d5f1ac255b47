"""Tables with one row for each model and record, from csv and parquet files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from glasshouse.arrays import FloatArray, IntArray
from glasshouse.errors import InputError, shortened
from glasshouse.evidence.outputs import Arrays
from glasshouse.population import as_ids

__all__ = ["as_flags", "tidy_arrays"]

_FLAGS = {
    **dict.fromkeys(("1", "true", "yes", "1.0"), 1),
    **dict.fromkeys(("0", "false", "no", "0.0"), 0),
    **dict.fromkeys(("", "none", "nan", "null"), -1),
}
_KINDS = (
    ("loss", re.compile("loss")),
    ("logits", re.compile(r"logit_(\d{1,6})")),
    ("probabilities", re.compile(r"probability_(\d{1,6})")),
)

Columns = dict[str, list[str]]  # cells by the name of the column; in an array all would be as wide as the longest


def tidy_arrays(columns: Columns, path: Path) -> Arrays:
    """Arrays as an npz file holds them, from columns ``model, id, member, label`` and the outputs.

    Example:
        >>> columns = {
        ...     "model": ["target", "target", "s0", "s0"], "id": ["a", "b", "b", "a"],
        ...     "member": ["", "", "1", "0"], "loss": ["0.1", "0.2", "0.3", "0.4"],
        ... }
        >>> arrays = tidy_arrays(columns, Path("x.csv"))
        >>> arrays["shadow_loss"], arrays["ids"]
        (array([[0.4, 0.3]]), array(['a', 'b'], dtype='<U1'))
    """
    kind, names = _output_columns(columns, path)
    missing = [name for name in ("model", "id", "member") if name not in columns]
    if missing:
        raise InputError(f"{path}: the column {missing[0]!r} is missing; the table needs model, id, member and {kind}.")
    outputs = np.stack([_numbers(columns[name], name, path) for name in names], axis=1)
    outputs = outputs[:, 0] if kind == "loss" else outputs
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(columns["model"]):
        rows_of.setdefault(name, []).append(row)
    if "target" not in rows_of:
        raise InputError(f"{path}: model: no row is named 'target'; give the target's rows this name.")
    target = rows_of.pop("target")
    ids = columns["id"]
    wanted = [ids[row] for row in target]
    names_of_records = as_ids(wanted, len(target), place=f"{path}: id")
    order = {name: _in_order(rows, wanted, ids, name, path) for name, rows in rows_of.items()}
    member = as_flags(columns["member"], place=f"{path}: member")
    _check_known(member, target, order, ids, path)
    arrays: Arrays = {f"target_{kind}": outputs[target], "ids": names_of_records}
    if order:  # the rows of every model are now in the target's order
        arrays[f"shadow_{kind}"] = np.stack([outputs[rows] for rows in order.values()])
        arrays["shadow_members"] = np.stack([member[rows] == 1 for rows in order.values()])
    if (member[target] >= 0).all():
        arrays["members"] = member[target] == 1
    if "label" in columns:
        labels = [columns["label"][row] for row in target]
        _check_labels(labels, columns["label"], order, ids, path)
        if kind != "loss" or all(map(_is_number, labels)):  # an attack on losses cannot use names
            arrays["labels"] = _numbers(labels, "label", path)
    return arrays


def _output_columns(columns: Columns, path: Path) -> tuple[str, list[str]]:
    """The kind of output in the table, and its columns in the order of the classes."""
    found = {}
    for kind, form in _KINDS:
        matches = [match for name in columns if (match := form.fullmatch(name))]
        if matches:
            found[kind] = sorted((int(match[1]) if form.groups else 0, match[0]) for match in matches)
    if not found:
        raise InputError(f"{path}: there is no column named loss, logit_0, … or probability_0, …; give one kind.")
    if len(found) > 1:
        raise InputError(f"{path}: has columns of {' and of '.join(found)}; give one kind, and leave the others out.")
    kind, numbered = next(iter(found.items()))
    if [number for number, _ in numbered] != list(range(len(numbered))):
        stem = numbered[0][1].partition("_")[0]
        raise InputError(f"{path}: the columns {stem}_0, {stem}_1, … have a gap; give one per class.")
    return kind, [name for _, name in numbered]


def _in_order(rows: list[int], wanted: list[str], ids: list[str], model: str, path: Path) -> IntArray:
    """Rows of one model in the target's order of records."""
    place = {ids[row]: row for row in rows}
    if len(place) != len(rows):
        raise InputError(
            f"{path}: model {shortened(model)} has a record twice; give one row for each model and record."
        )
    if place.keys() != (known := set(wanted)):
        name = next((name for name in wanted if name not in place), None) or next(n for n in place if n not in known)
        raise InputError(
            f"{path}: record {shortened(name)} is not in both the target's rows and those of model {shortened(model)}."
        )
    return np.array([place[name] for name in wanted], dtype=np.int64)


def _check_known(member: IntArray, target: list[int], order: dict[str, IntArray], ids: list[str], path: Path) -> None:
    """Refuse an empty cell for a shadow model, and for some of the target's records but not for all."""
    for rows in order.values():
        if (empty := rows[member[rows] < 0]).size:
            name = shortened(ids[empty[0]])
            raise InputError(f"{path}: member: empty for record {name} of a shadow model; write 1 or 0.")
    own = member[target] < 0
    if own.any() and not own.all():
        name = shortened(ids[target[int(np.flatnonzero(own)[0])]])
        raise InputError(
            f"{path}: member: empty for record {name} of the target, and not for all; write 1 or 0, or empty them all."
        )


def _check_labels(labels: list[str], every: list[str], order: dict[str, IntArray], ids: list[str], path: Path) -> None:
    """Refuse a record that has one label in the target's row and another in a shadow model's."""
    for model, rows in order.items():
        for label, row in zip(labels, rows.tolist(), strict=True):
            if every[row] != label and not _same_number(every[row], label):
                raise InputError(
                    f"{path}: label: record {shortened(ids[row])} has the label {shortened(label)} for the target and "
                    f"{shortened(every[row])} for model {shortened(model)}; a record has one label."
                )


def as_flags(values: Sequence[str], *, place: str) -> IntArray:
    """1 for 1, true and yes, 0 for 0, false and no, -1 for an empty cell; [rows].

    Example:
        >>> as_flags(["True", "no", ""], place="people.csv: member")
        array([ 1,  0, -1])
    """
    found = [_FLAGS.get(value.strip().lower(), 2) for value in values]
    if 2 in found:
        raise InputError(f"{place}: {shortened(values[found.index(2)])} is neither 1 nor 0.")
    return np.array(found, dtype=np.int64)


def _same_number(first: str, second: str) -> bool:
    return _is_number(first) and _is_number(second) and float(first) == float(second)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000


def _numbers(cells: Sequence[str], name: str, path: Path) -> FloatArray:
    for cell in cells:
        if not _is_number(cell):
            raise InputError(f"{path}: {name}: {shortened(cell)} is not a number.")
    return np.array([float(cell) for cell in cells], dtype=np.float64)
