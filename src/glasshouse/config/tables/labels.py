"""The labels of a table, as the user's own program would have them, and which of its records trained the target."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.config.tables.columns import Decimal, Rows, TableSection, as_number, is_number
from glasshouse.core.arrays import BoolArray, FloatArray, TextArray
from glasshouse.core.errors import InputError, shortened
from glasshouse.data import first_of
from glasshouse.data.labels import short_texts
from glasshouse.evidence.tables import as_flags, read_text_table
from glasshouse.io.files import check_name
from glasshouse.io.guarded import guarded, read_content

NO_LABEL = frozenset({"", "nan", "null", "na", "n/a", "#n/a", "<na>"})  # "none" may be a class

_WHOLE = re.compile(r"(-?(?:0|[1-9]\d{0,15}))(?:\.0*)?")
_FEW = 20  # different values that can be classes whatever they look like
_PER_CLASS = 10  # records per value, on average, below which many numbers are not classes


def as_targets(cells: list[str], *, decimal: Decimal, place: str) -> NDArray[Any]:
    """[N] real numbers that a model predicts."""
    if wrong := [cell for cell in cells if not is_number(cell, decimal)]:
        raise InputError(f"{place}: {shortened(wrong[0])} is not a number, and a regression predicts numbers.")
    return np.array([as_number(cell, decimal) for cell in cells])


def as_labels(cells: list[str], *, decimal: Decimal, place: str) -> NDArray[Any]:
    """[N] labels: whole numbers as such, true and false as such, anything else as text.

    So they are equal to the classes of a model that the user has trained on the same table. Labels that look like the
    target of a regression, or like names, are refused.

    None of the cells is empty. ``place`` is the file and the column, for errors.
    """
    different = Counter(cells)
    numbers = all(is_number(cell, decimal) for cell in different)
    whole = all(_WHOLE.fullmatch(cell) for cell in different)
    many = len(different) > _FEW
    if many and numbers and (not whole or len(different) * _PER_CLASS > len(cells)):
        raise InputError(
            f"{place}: {len(different)} different numbers in {len(cells)} records look like the targets of a "
            f"regression. Say regression: true in the section data, cut them into a few classes, or choose another "
            f"column (data.label)."
        )
    if many and 2 * len(different) > len(cells):
        raise InputError(
            f"{place}: {len(different)} different labels in {len(cells)} records are not classes. Choose another "
            f"column (data.label)."
        )
    if whole:
        read = {cell: int(match[1]) for cell in different if (match := _WHOLE.fullmatch(cell))}
        return np.array([read[cell] for cell in cells], dtype=np.int64)
    words = {cell: cell.lower() for cell in different}
    if set(words.values()) <= {"true", "false"}:
        return np.array([words[cell] == "true" for cell in cells])
    return short_texts(cells, place=place, what="label")


_SPLITS = {"train": "1", "test": "0", "holdout": "0"}
_ENOUGH = 30  # records; with fewer, a column can be like the members by chance


def read_members(section: TableSection, rows: Rows, ids: TextArray, folder: Path) -> BoolArray | None:
    """[N] which of the records with these ids trained the target; None if the audit file does not say."""
    if len(rows.counts) == 2:
        return np.arange(len(rows)) < rows.counts[0]
    if section.members is None:
        return None
    if section.members in rows.columns:
        cells = [_SPLITS.get(cell.lower(), cell) for cell in rows.columns[section.members]]
        flags = as_flags(cells, place=f"{rows.place}: {section.members}")
        if len(empty := np.flatnonzero(flags < 0)):
            rows.refuse(section.members, empty.tolist(), "the cell is empty. Write 1 or 0, or leave the row out.")
        return np.asarray(flags == 1)
    path = folder / section.members
    check_name(path)
    if not path.is_file():
        raise InputError(
            f"{rows.place}: data.members: {section.members!r} is neither a column nor a file of ids. Columns: "
            f"{', '.join(rows.columns)}."
        )
    if section.id is None:
        raise InputError(
            "data.members: is a file of ids, but the table has none; say which column holds them (data.id)."
        )
    return _among(ids, _listed_ids(path, section.id), path)


def refuse_telling(x: FloatArray, names: Sequence[str], members: BoolArray, place: str) -> None:
    """Refuse a feature [N, F] that is the membership itself: models would learn it, and every attack look strong."""
    if len(members) < _ENOUGH:
        return
    telling = (x == members[:, None]).all(axis=0) | (x != members[:, None]).all(axis=0) & np.isin(x, (0, 1)).all(axis=0)
    if telling.any():
        raise InputError(
            f"{place}: the feature {names[first_of(telling)]!r} says who is a member. Leave its column out "
            f"(data.leave_out)."
        )


def _listed_ids(path: Path, id_column: str) -> list[str]:
    """The ids in a file: one per line, or the column of the ids."""
    if path.suffix == ".txt":
        with guarded(path, what="a list of ids in UTF-8, one per line"):
            lines = read_content(path, times=20).decode("utf-8-sig").splitlines()
        found = [line.strip() for line in lines if line.strip()]
        return found[1:] if found[:1] == [id_column] else found
    columns = read_text_table(path).columns
    if id_column not in columns and len(columns) > 1:
        raise InputError(f"{path}: has no column {id_column!r}. Columns: {', '.join(columns)}.")
    return columns[id_column] if id_column in columns else [*columns, *next(iter(columns.values()))]  # without a header


def _among(ids: TextArray, listed: list[str], path: Path) -> BoolArray:
    known = set(ids.tolist())
    if strange := [name for name in listed if name not in known]:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        raise InputError(f"{path}: the id {shortened(strange[0])}{more}: no record of the table has it.")
    chosen = set(listed)
    return np.array([name in chosen for name in ids.tolist()], dtype=np.bool_)
