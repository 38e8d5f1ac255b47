"""What a column of a table holds, decided from its different cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.config.tables.cells import (
    EMPTY,
    MARKS,
    TRUTHS,
    Decimal,
    as_number,
    date_reader,
    decimal_signs,
    is_number,
)
from glasshouse.errors import InputError, shortened
from glasshouse.population.labels import short_texts

__all__ = ["Column", "file_decimal", "read_column"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Column:
    """A column whose kind is known.

    Args:
        name: of the column.
        kind: what its cells hold; ``"empty"`` if there is nothing in it.
        cells: [N] as they stand in the file.
        values: [N] numbers, truths as 1 and 0, dates as days since 1970, NaN for an empty cell; None for text.
    """

    name: str
    kind: Literal["number", "truth", "date", "text", "empty"]
    cells: list[str]
    values: FloatArray | None = None

    @property
    def groups(self) -> np.ndarray:
        """[N] the values by which a report divides the records: numbers, or text."""
        if self.kind == "number" and self.values is not None:
            return self.values
        return short_texts(
            ["missing" if cell.lower() in EMPTY else cell for cell in self.cells], place=self.name, what="group"
        )

    @property
    def remade(self) -> bool:
        """Whether its features are other than its cells: text, dates and columns with empty cells."""
        return self.kind not in ("number", "truth") or self.values is None or bool(np.isnan(self.values).any())


def file_decimal(columns: Mapping[str, list[str]], *, separator: str, place: str) -> Decimal:
    """The decimal sign of a file: the one that its columns of numbers need.

    Args:
        columns: [N] cells by name.
        separator: of the file; where ``1,234`` could be either, it is a thousand in a file with commas between cells.
        place: the file, for errors.

    Example:
        >>> file_decimal({"a": ["1,5", "2"], "b": ["3", "4"]}, separator=";", place="d.csv")
        ','
    """
    needed: dict[Decimal, str] = {}
    unclear = ""
    for name, cells in columns.items():
        present = [cell for cell in set(cells) if cell.lower() not in MARKS]
        signs = decimal_signs(present)
        if len(signs) == 1:
            needed.setdefault(signs.pop(), name)
        elif signs:
            unclear += "".join(present)
    if len(needed) == 2:
        raise InputError(
            f"{place}: the column {needed[',']!r} has a decimal comma and {needed['.']!r} a decimal point. Write both "
            f"alike, or say which one numbers have (data.decimal); the other column is then text."
        )
    if needed:
        return next(iter(needed))
    return "," if separator != "," and "," in unclear and "." not in unclear else "."


def read_column(
    name: str, cells: list[str], *, decimal: Decimal, most: int, as_text: bool = False, place: str
) -> Column:
    """A column as numbers, truths or dates if all cells that are not empty are; otherwise as text.

    Args:
        name: of the column.
        cells: [N] of it.
        decimal: the decimal sign of the file.
        most: how many texts get a feature of their own. A column with more different numbers than that, and a few
            words, is refused: as text it would lose its numbers.
        as_text: whether numbers in it are names.
        place: the file, for errors.

    Example:
        >>> read_column("age", ["30", "?", "41"], decimal=".", most=50, place="people.csv").values
        array([30., nan, 41.])
        >>> read_column("town", ["Oslo", "?", ""], decimal=".", most=50, place="people.csv").kind
        'text'
    """
    different = Counter(cells)
    present = {cell: count for cell, count in different.items() if cell.lower() not in MARKS}
    if all(cell.lower() in EMPTY for cell in different):
        return Column(name=name, kind="empty", cells=cells)
    if as_text:
        return Column(name=name, kind="text", cells=cells)
    if present and all(cell.lower() in TRUTHS for cell in present):
        numeric = all(is_number(cell, decimal) for cell in present)
        read = _mapped(cells, present, lambda cell: TRUTHS[cell.lower()])
        return Column(name=name, kind="number" if numeric else "truth", cells=cells, values=read)
    numbers = {cell: count for cell, count in present.items() if is_number(cell, decimal)}
    if present and len(numbers) == len(present):
        return Column(
            name=name, kind="number", cells=cells, values=_mapped(cells, present, lambda cell: as_number(cell, decimal))
        )
    if (days := date_reader(present.keys(), place=f"{place}: {name}")) is not None:
        return Column(name=name, kind="date", cells=cells, values=_mapped(cells, present, days))
    if len(numbers) > most and 2 * sum(numbers.values()) > sum(present.values()):
        words = present.keys() - numbers.keys()
        row, cell = next((row, cell) for row, cell in enumerate(cells, start=1) if cell in words)
        raise InputError(
            f"{place}: {name}: row {row}: {shortened(cell)} is not a number, but most cells of the column are. "
            f"Write a number, empty the cell, or list the column under data.categories or data.leave_out."
        )
    return Column(name=name, kind="text", cells=cells)


def _mapped(cells: list[str], present: Mapping[str, int], read: Callable[[str], float]) -> FloatArray:
    """[N] each cell read once per different cell; NaN where a cell is empty."""
    values = {cell: read(cell) for cell in present}
    return np.array([values.get(cell, np.nan) for cell in cells])
