"""The door to parquet: a table judged by its own description, then read in parts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError, needs_extra, shortened
from glasshouse.reading import check_memory, file_size, guarded

__all__ = ["parquet_columns"]

_ROWS = 10_000  # of one part
_OF_CELL = 80  # bytes that Python needs for a cell besides its letters
_POINTER = 8


def parquet_columns(path: Path) -> dict[str, list[str]]:
    """The cells of each column as text; an empty cell is an empty text.

    Texts that are equal are one object, so a long one that stands in every row takes its memory once, as in the file.
    """
    with needs_extra("Reading parquet", package="pyarrow", extra="tables"):
        import pyarrow as arrow
        import pyarrow.parquet
    place = str(path)
    check_memory(file_size(path), place=place, what="the file takes")
    with guarded(path, what="a complete parquet file"):
        schema = pyarrow.parquet.read_schema(path)
        names = schema.names
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(f"{path}: the column {shortened(twice[0])} is there twice; give each column its own name.")
        for field in schema:
            if arrow.types.is_nested(field.type):
                raise InputError(
                    f"{path}: the column {shortened(field.name)} holds lists; a table has one value per cell."
                )
            if not _readable(field.type, arrow):
                raise InputError(
                    f"{path}: the column {shortened(field.name)} is of type {field.type}; save text or numbers."
                )
        texts = [field.name for field in schema if _is_text(field.type, arrow)]
        # equal texts stay one entry of a dictionary, as they are in the file
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            _judge(file.metadata, place)
            columns: dict[str, list[str]] = {name: [] for name in names}
            budget = _Budget(place)
            for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    columns[name] += budget.cells(column)
    if not columns or not next(iter(columns.values())):
        raise InputError(f"{path}: the table has no rows.")
    return columns


class _Budget:
    """Counts what cells take while they are read: what a file says about itself may be too little."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._taken = 0
        self._texts: dict[str, str] = {}

    def cells(self, column: Any) -> list[str]:
        """The cells of one part of a column."""
        if not hasattr(column, "dictionary"):
            found = [_text(value) for value in column.to_pylist()]
            self._take(_OF_CELL * len(found))
            return found
        self._take(column.dictionary.nbytes + _POINTER * len(column))
        entries = [self._one(_text(value)) for value in column.dictionary.to_pylist()]
        return ["" if at is None else entries[at] for at in column.indices.to_pylist()]

    def _one(self, text: str) -> str:
        """The same object for equal texts."""
        if text not in self._texts:
            self._take(_OF_CELL + 4 * len(text))
            self._texts[text] = text
        return self._texts[text]

    def _take(self, more: int) -> None:
        self._taken += more
        check_memory(self._taken, place=self._place, what="its cells take more than")


def _judge(metadata: Any, place: str) -> None:
    """Refuse a table that says itself that it is too large."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = sum(max(0, group.total_byte_size) for group in groups)
    cells = max(0, metadata.num_rows) * metadata.num_columns
    check_memory(unpacked + _POINTER * cells, place=place, what="its columns unpack to")


def _is_text(kind: Any, arrow: Any) -> bool:
    return any(test(kind) for test in (arrow.types.is_string, arrow.types.is_large_string))


def _readable(kind: Any, arrow: Any) -> bool:
    types = arrow.types
    if types.is_dictionary(kind):
        return _is_text(kind.value_type, arrow)
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_null, types.is_decimal, types.is_temporal)
    return _is_text(kind, arrow) or any(test(kind) for test in tests)


def _text(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value).strip()
