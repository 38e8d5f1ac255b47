"""Columns of text from csv and parquet files, as programs and spreadsheets write them."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError, shortened
from glasshouse.evidence.parquet_files import parquet_columns
from glasshouse.reading import check_memory, guarded, read_content

__all__ = ["TextTable", "read_text_table"]

_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE = 100  # rows that must agree on the separator
_OF_CELL = 80  # bytes that Python needs for a cell besides its letters: the text, and its place in a row and a column


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """The columns of a file, each cell as text without spaces around it.

    Args:
        columns: [N] cells by the name of the column. They are lists: in an array of text every cell is as wide as the
            longest one.
        separator: between the cells of a row; a comma for parquet.
        foreign: whether the file is not UTF-8 and was read as Windows-1252.
    """

    columns: dict[str, list[str]]
    separator: str = ","
    foreign: bool = False


def read_text_table(path: Path, *, names: Sequence[str] | None = None, separator: str | None = None) -> TextTable:
    r"""The columns of a parquet file, or of a text file with separators.

    Args:
        path: of the file; parquet if it ends so.
        names: of the columns, for a text file whose first line is already a record.
        separator: between cells; by default the one of ``, ; | tab`` that gives every row the most cells.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "data.csv"
        ...     _ = path.write_text("age;town\n30; Oslo\n40;Bergen\n")
        ...     read_text_table(path).columns
        {'age': ['30', '40'], 'town': ['Oslo', 'Bergen']}
    """
    if path.suffix.lower() == ".parquet":
        return TextTable(columns=parquet_columns(path))
    with guarded(path, what="a text table"):
        return _from_text(path, names=names, separator=separator)


def _from_text(path: Path, *, names: Sequence[str] | None, separator: str | None) -> TextTable:
    text, foreign = _decoded(path)
    if excel := re.match(r"sep=(.)\r?\n", text):  # a line that tells a spreadsheet what separates cells
        separator, text = separator or excel[1], text[excel.end() :]
    separator = separator or _separator(text, names)
    cells = text.count(separator) + text.count("\n") + text.count("\r") + 1
    check_memory(2 * len(text) + cells * _OF_CELL, place=str(path), what="its cells may take")
    try:
        reader = _rows(text, separator)
        rows = [(reader.line_num, row) for row in reader if any(row)]
    except csv.Error as error:
        raise InputError(f"{path}: is not a text table: {error}.") from error
    if names is None and rows:
        header, rows = [name.strip() for name in rows[0][1]], rows[1:]
    else:
        header = list(names or ())
    if not rows:
        raise InputError(f"{path}: the table has no rows.")
    whose = "the header has" if names is None else "there are names for"
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(f"{path}: line {line} has {len(row)} fields, but {whose} {len(header)}.")
    header = [name or f"column {place}" for place, name in enumerate(header, start=1)]
    _refuse_twice(header, path)
    columns = zip(*(row for _, row in rows), strict=True)
    return TextTable(
        columns={name: [cell.strip() for cell in column] for name, column in zip(header, columns, strict=True)},
        separator=separator,
        foreign=foreign,
    )


def _refuse_twice(header: Sequence[str], path: Path) -> None:
    if twice := [name for name, count in Counter(header).items() if count > 1]:
        raise InputError(f"{path}: the column {shortened(twice[0])} is there twice; give each column its own name.")


def _rows(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)


def _separator(text: str, names: Sequence[str] | None) -> str:
    """The separator that gives every row of a sample the same number of cells, and the most."""
    found: dict[str, tuple[bool, int]] = {}
    for one in _SEPARATORS:
        try:
            widths = [len(row) for row in itertools.islice(_rows(text, one), _SAMPLE) if row]
        except csv.Error:
            continue
        wanted = widths[0] if names is None and widths else len(names or ())
        found[one] = (wanted > 1 and set(widths) == {wanted}, widths[0] if widths else 0)
    return max(found, key=lambda one: found[one], default=",")  # the first of equals


def _decoded(path: Path) -> tuple[str, bool]:
    content = read_content(path, times=2)
    if b"\x00" in content:
        raise InputError(f"{path}: is not a text table: it holds zero bytes. Save it as CSV with UTF-8.")
    try:
        return content.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        pass
    try:  # spreadsheets on Windows write this; at worst some letters are wrong, and equal cells stay equal
        return content.decode("cp1252"), True
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text table: {error}. Save it as CSV with UTF-8.") from error
