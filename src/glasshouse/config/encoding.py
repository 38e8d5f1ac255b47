"""From the tables of an audit file to a population, its members and its groups.

Numbers stay as they are, text becomes one-hot, empty cells are filled and marked. The encoding is the same for all
models. It looks at all records of the table and at no membership, so a feature cannot tell who was trained on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder

from glasshouse.config.columns import (
    Column,
    Decimal,
    Rows,
    TableSection,
    as_number,
    file_decimal,
    is_number,
    read_column,
    read_rows,
)
from glasshouse.core.arrays import BoolArray, FloatArray, TextArray
from glasshouse.core.errors import InputError, placed, shortened
from glasshouse.data import Population, first_of
from glasshouse.data.labels import short_texts
from glasshouse.data.named import Dataset
from glasshouse.evidence.tables import EMPTY, as_flags, read_text_table
from glasshouse.io.files import check_name
from glasshouse.io.guarded import guarded, read_content
from glasshouse.io.limits import check_memory

LARGEST = 1e38  # of a feature: models work in float32, where more is infinite
_NAMED = 12  # columns that a note lists by name
_NO_LABEL = EMPTY - {"none", "nat"}  # which may be classes
_WHOLE = re.compile(r"(-?(?:0|[1-9]\d{0,15}))(?:\.0*)?")
_FEW = 20  # different values that can be classes whatever they look like
_PER_CLASS = 10  # records per value, on average, below which many numbers are not classes
_SPLITS = {"train": "1", "test": "0", "holdout": "0"}
_ENOUGH = 30  # records; with fewer, a column can be like the members by chance


class Encoded(NamedTuple):
    """Features and what was done for them."""

    x: FloatArray  # [N, F] in the order of the columns
    names: tuple[str, ...]  # [F]
    notes: tuple[str, ...]  # what a reader of the report should know
    warnings: tuple[str, ...]  # columns that are probably not meant as features


def encode(columns: Sequence[Column], *, most: int, standardise: bool, place: str) -> Encoded:
    """Features from columns: one per number, date or truth, and one per value of a text, at most ``most``.

    Empty cells that are not text hold the median, and a second feature says where; the rarest texts share the last.
    """
    used = [column for column in columns if column.kind != "empty"]
    if not used:
        raise InputError(f"{place}: has no column of features.")
    width = sum(min(most, len(set(column.cells))) if column.kind == "text" else 2 for column in used)
    check_memory(
        width * len(used[0].cells) * 8,
        place=place,
        what=f"the table has {width} features (data.leave_out and data.max_categories make them fewer), which take",
    )
    for column in used:
        if column.values is not None and np.nanmax(np.abs(column.values)) > LARGEST:
            raise InputError(f"{place}: {column.name}: a number is above {LARGEST:g}, too large for a model.")
    parts = [_texts(column, most) if column.kind == "text" else _numbers(column, standardise) for column in used]
    names = tuple(name for _, block in parts for name in block)
    return Encoded(
        x=np.concatenate([block for block, _ in parts], axis=1),
        names=names,
        notes=_notes(columns, len(names), most=most, standardise=standardise),
        warnings=tuple(text for column in used if (text := _like_an_id(column, most))),
    )


def _numbers(column: Column, standardise: bool) -> tuple[FloatArray, list[str]]:
    assert column.values is not None  # noqa: S101 (only text has none)
    empty = np.isnan(column.values)
    values = np.where(empty, np.median(column.values[~empty]), column.values)
    if standardise and column.kind != "truth":
        values = (values - values.mean()) / (values.std() or 1.0)
    if not empty.any():
        return values[:, None], [column.name]
    return np.stack([values, empty.astype(np.float64)], axis=1), [column.name, f"{column.name} is empty"]


def _texts(column: Column, most: int) -> tuple[FloatArray, list[str]]:
    different = sorted(set(column.cells))
    places = {cell: place for place, cell in enumerate(different)}
    # numbers instead of texts: ten times faster, and one long text does not make all cells as wide
    codes = np.array([places[cell] for cell in column.cells])[:, None]
    capped = most if len(different) > most else None  # scikit-learn would merge two of exactly as many values
    encoder = OneHotEncoder(max_categories=capped, handle_unknown="infrequent_if_exist", sparse_output=False)
    block: FloatArray = encoder.fit_transform(codes)
    rare = None if capped is None else encoder.infrequent_categories_[0]
    others = set() if rare is None else set(rare.tolist())
    frequent = [cell for place, cell in enumerate(different) if place not in others]
    names = [f"{column.name} = {cell}" if cell else f"{column.name} is empty" for cell in frequent]
    return block, names if rare is None else [*names, f"{column.name}: one of {len(rare)} rare values"]


def _notes(columns: Sequence[Column], features: int, *, most: int, standardise: bool) -> tuple[str, ...]:
    def named(*kinds: str, empty_cells: bool = False) -> list[str]:
        found = [column for column in columns if column.kind in kinds]
        return [one.name for one in found if not empty_cells or (one.values is not None and np.isnan(one.values).any())]

    said = {
        "numbers as they are" if not standardise else "numbers, standardised": named("number"),
        "yes and no as 1 and 0": named("truth"),
        "dates as days since 1970" + (", standardised" if standardise else ""): named("date"),
        "texts one-hot": named("text"),
    }
    kinds = "; ".join(f"{what}: {_listed(names)}" for what, names in said.items() if names)
    notes = [
        f"{_count(len(columns), 'column')} of the table {'is' if len(columns) == 1 else 'are'} "
        f"{_count(features, 'feature')} ({kinds}). The encoding uses all records and no membership."
    ]
    if filled := named("number", "truth", "date", empty_cells=True):
        notes.append(f"Empty cells hold the column's median, and a second feature says where: {_listed(filled)}.")
    if capped := [column.name for column in columns if column.kind == "text" and len(set(column.cells)) > most]:
        notes.append(
            f"Texts with more than {most} different values: the {most - 1} most frequent have a feature each, all "
            f"others share one: {_listed(capped)}."
        )
    if empty := named("empty"):
        notes.append(f"Columns without anything in them were left out: {_listed(empty)}.")
    return tuple(notes)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _like_an_id(column: Column, most: int) -> str:
    """What is odd about a column that names records instead of describing them; empty if nothing is."""
    advice = f"If it names the record, leave it out: leave_out: [{column.name}], or id: {column.name}."
    if column.kind == "text":
        different = len(set(column.cells))
        if different > most and 2 * different > len(column.cells):
            return f"{column.name}: {different} different texts in {len(column.cells)} records. {advice}"
    elif column.kind == "number" and column.values is not None and len(column.values) > most:
        whole = bool((column.values == np.floor(column.values)).all())  # False with an empty cell
        if whole and len(np.unique(column.values)) == len(column.values):
            return f"{column.name}: every record has its own whole number. {advice}"
    return ""


def as_labels(cells: list[str], *, decimal: Decimal, place: str) -> NDArray[Any]:
    """[N] labels as a model of the same table has them: whole numbers, true and false as such, all else as text."""
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


def _read_members(section: TableSection, rows: Rows, ids: TextArray, folder: Path) -> BoolArray | None:
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


def read_records(section: TableSection, folder: Path) -> Dataset:
    """The records of the tables that a section names, every column as numbers; its paths start in the folder."""
    rows = read_rows(section, folder)
    by_column = section.members if section.members in rows.columns else None
    special = [name for name in (section.label, section.id, section.unit, by_column) if name is not None]
    rows.check([*special, *section.groups, *section.leave_out, *section.categories])
    if section.label in section.leave_out:
        raise InputError(
            f"data.leave_out: {section.label!r} is the label, which is never a feature. Leave it out here."
        )
    # no list is searched for each column: a table may have a million of them
    others, groups, texts = {*special, *section.leave_out}, set(section.groups), set(section.categories)
    features = dict.fromkeys(name for name in rows.columns if name not in others)
    read = {name: cells for name, cells in rows.columns.items() if name in features or name in groups}
    numeric = {
        name: cells
        for name, cells in rows.columns.items()
        if (name in features or name == section.label) and name not in texts
    }
    decimal = section.decimal or file_decimal(numeric, separator=rows.separator, place=rows.place)
    most = section.max_categories
    columns = {
        name: read_column(name, cells, decimal=decimal, most=most, as_text=name in texts, place=rows.place)
        for name, cells in read.items()
    }
    encoded = encode([columns[name] for name in features], most=most, standardise=section.standardise, place=rows.place)
    labels = _labels(rows, section, decimal=decimal)
    ids = None if section.id is None else rows.columns[section.id]
    with placed(rows.place):
        units = section.units(None if section.unit is None else rows.columns[section.unit])
        population = Population(encoded.x, labels, ids=ids, regression=bool(section.regression), unit=units)
    members = _read_members(section, rows, population.ids, folder)
    if members is not None:
        refuse_telling(encoded.x, encoded.names, members, rows.place)
    return section.data_set(
        population,
        members=members,
        groups={name: columns[name].groups for name in section.groups},
        notes=(*rows.notes, *encoded.notes, *(["Numbers have a decimal comma."] if decimal == "," else [])),
        warnings=(*encoded.warnings, *([] if section.regression else _only_outside(labels, rows))),
        remade=tuple(name for name in features if section.standardise or columns[name].remade),
    )


def _labels(rows: Rows, section: TableSection, *, decimal: Any) -> NDArray[Any]:
    cells, place = rows.columns[section.label], f"{rows.place}: {section.label}"
    if empty := [row for row, cell in enumerate(cells) if cell.lower() in _NO_LABEL]:
        rows.refuse(section.label, empty, "the label is empty. Fill it in, or leave the row out.")
    if not section.regression:
        return as_labels(cells, decimal=decimal, place=place)
    if wrong := [cell for cell in cells if not is_number(cell, decimal)]:
        raise InputError(f"{place}: {shortened(wrong[0])} is not a number, and a regression predicts numbers.")
    return np.array([as_number(cell, decimal) for cell in cells])


def _only_outside(labels: NDArray[Any], rows: Rows) -> list[str]:
    """Labels of the second file that the first one does not have: the target cannot know them."""
    if len(rows.counts) < 2:
        return []
    inside, outside = (np.unique(part) for part in np.split(labels, [rows.counts[0]]))
    lost = outside[~np.isin(outside, inside)].tolist()
    if len(lost) == len(outside):
        raise InputError(
            f"{rows.place}: the files have no label in common: {inside.tolist()[:5]} and {outside.tolist()[:5]}. Write "
            f"them alike."
        )
    return [f"Only {rows.paths[1].name} has the labels {lost[:5]}, so the target cannot know them."] if lost else []
