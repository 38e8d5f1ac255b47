"""From the tables of an audit file to a population, its members and its groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray
from glasshouse.config.tables.columns import file_decimal, read_column
from glasshouse.config.tables.encoding import encode
from glasshouse.config.tables.labels import NO_LABEL, as_labels, as_targets
from glasshouse.config.tables.members import is_column, read_members, refuse_telling
from glasshouse.config.tables.section import TableSection
from glasshouse.config.tables.text import Rows, read_rows
from glasshouse.errors import InputError
from glasshouse.population import Population

__all__ = ["Records", "read_records"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """What an audit takes from a file.

    Args:
        population: the records.
        members: [N] which of them trained the target; None if the file does not say.
        groups: columns [N] that divide the records, by name.
        notes: how columns became features.
        warnings: columns that are probably not meant as features, and labels that only one file has.
        remade: columns that are not in the features as they stand in the file: text, dates, empty cells.
    """

    population: Population
    members: BoolArray | None = None
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    remade: tuple[str, ...] = ()


def read_records(section: TableSection, folder: Path) -> Records:
    r"""The records of a table, every column as numbers.

    Args:
        section: the keys of ``data: {name: file}``.
        folder: where paths start.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "people.csv").write_text("age,sex,label\n30,f,no\n,m,yes\n40,f,yes\n")
        ...     records = read_records(TableSection(name="file", path="people.csv", groups=("sex",)), Path(folder))
        >>> records.population.x
        array([[30.,  0.,  1.,  0.],
               [35.,  1.,  0.,  1.],
               [40.,  0.,  1.,  0.]])
        >>> records.groups
        {'sex': array(['f', 'm', 'f'], dtype='<U1')}
    """
    rows = read_rows(section, folder)
    by_column = section.members if is_column(section.members, rows) else None
    special = [name for name in (section.label, section.id, by_column) if name is not None]
    rows.check([*special, *section.groups, *section.leave_out, *section.categories])
    if section.label in section.leave_out:
        raise InputError(
            f"data.leave_out: {section.label!r} is the label, which is never a feature. Leave it out here."
        )
    # no list is searched for each column: a table may have a million of them
    others, groups, texts = {*special, *section.leave_out}, set(section.groups), set(section.categories)
    features = dict.fromkeys(name for name in rows.columns if name not in others)
    read = {name: cells for name, cells in rows.columns.items() if name in features or name in groups}
    numeric = {name: cells for name, cells in rows.columns.items() if name in features or name == section.label}
    decimal = section.decimal or file_decimal(
        {name: cells for name, cells in numeric.items() if name not in texts},
        separator=rows.separator,
        place=rows.place,
    )
    most = section.max_categories
    columns = {
        name: read_column(name, cells, decimal=decimal, most=most, as_text=name in texts, place=rows.place)
        for name, cells in read.items()
    }
    encoded = encode([columns[name] for name in features], most=most, standardise=section.standardise, place=rows.place)
    labels = _labels(rows, section, decimal=decimal)
    ids = None if section.id is None else rows.columns[section.id]
    try:
        population = Population(encoded.x, labels, ids=ids, regression=bool(section.regression))
    except InputError as error:
        raise InputError(*[f"{rows.place}: {fault}" for fault in error.faults]) from error
    members = read_members(section, rows, population.ids, folder)
    if members is not None:
        refuse_telling(encoded.x, encoded.names, members, rows.place)
    return Records(
        population=population,
        members=members,
        groups={name: columns[name].groups for name in section.groups},
        notes=(*rows.notes, *encoded.notes, *(["Numbers have a decimal comma."] if decimal == "," else [])),
        warnings=(*encoded.warnings, *([] if section.regression else _only_outside(labels, rows))),
        remade=tuple(name for name in features if section.standardise or columns[name].remade),
    )


def _labels(rows: Rows, section: TableSection, *, decimal: Any) -> NDArray[Any]:
    cells = rows.columns[section.label]
    if empty := [row for row, cell in enumerate(cells) if cell.lower() in NO_LABEL]:
        rows.refuse(section.label, empty, "the label is empty. Fill it in, or leave the row out.")
    read = as_targets if section.regression else as_labels
    return read(cells, decimal=decimal, place=f"{rows.place}: {section.label}")


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
