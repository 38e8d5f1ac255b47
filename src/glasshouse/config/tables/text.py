"""The tables of an audit file before their cells are read: one file, or two below each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from glasshouse.config.tables.cells import is_number
from glasshouse.config.tables.section import TableSection
from glasshouse.errors import InputError, shortened
from glasshouse.evidence.table_files import read_text_table
from glasshouse.reading import file_size
from glasshouse.registry import did_you_mean

__all__ = ["Rows", "read_rows"]

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".data", ".dat")


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The rows of one file, or of several with the same columns.

    Args:
        columns: [N] cells by name.
        counts: rows of each file.
        paths: of the files.
        separator: of the first file.
        notes: what a reader of the report should know.
    """

    columns: dict[str, list[str]]
    counts: tuple[int, ...]
    paths: tuple[Path, ...]
    separator: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(self.counts)

    @property
    def place(self) -> str:
        """The files, for errors about all rows."""
        return " and ".join(map(str, self.paths))

    def refuse(self, name: str, rows: Sequence[int], fault: str) -> NoReturn:
        """Refuse cells of a column, and say where the first one is; rows are counted without the header."""
        file, row = 0, rows[0]
        while row >= self.counts[file]:
            file, row = file + 1, row - self.counts[file]
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        raise InputError(f"{self.paths[file]}: {name}: row {row + 1}{more}: {fault}")

    def check(self, names: Iterable[str]) -> None:
        """Refuse a column that is not there."""
        if lost := [name for name in names if name not in self.columns]:
            hint = did_you_mean(lost[0], self.columns)
            advice = ""
            if len(self.columns) == 1:
                advice = " If cells are not separated as they should be, set data.separator."
            elif any(is_number(name, ".") for name in self.columns):
                advice = " If the first line is a record, name the columns: data.columns."
            columns = ", ".join(self.columns)
            raise InputError(f"{self.place}: has no column {shortened(lost[0])}.{hint} Columns: {columns}.{advice}")


def read_rows(section: TableSection, folder: Path) -> Rows:
    """The rows of the files that a section names, one file below the other."""
    paths = tuple(folder / name for name in section.files)
    for path in paths:
        file_size(path)
        if path.suffix.lower() not in (*_TEXT, ".parquet"):
            raise InputError(
                f"{path}: records are read from .npz, .parquet or text tables ({', '.join(_TEXT)}). Save it as CSV."
            )
    tables = [read_text_table(path, names=section.columns, separator=section.separator) for path in paths]
    first = tables[0].columns
    for table, path in zip(tables[1:], paths[1:], strict=True):
        if strange := sorted(first.keys() ^ table.columns.keys()):
            without = path if strange[0] in first else paths[0]
            raise InputError(f"{without}: has no column {strange[0]!r}, but the other file has it.")
    foreign = [path.name for path, table in zip(paths, tables, strict=True) if table.foreign]
    return Rows(
        columns={name: [cell for table in tables for cell in table.columns[name]] for name in first},
        counts=tuple(len(next(iter(table.columns.values()))) for table in tables),
        paths=paths,
        separator=tables[0].separator,
        notes=tuple(f"{name} is not UTF-8; it was read as Windows-1252." for name in foreign),
    )
