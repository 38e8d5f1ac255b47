"""A table of named columns for results, without a data-frame library."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.errors import InputError, needs_extra
from glasshouse.core.escape import cell_text, visible

_SHOWN = 60  # rows in a notebook


class Table(Mapping[str, NDArray[Any]]):
    """Columns of one length, by name, in order. Prints as aligned text.

    Example:
        >>> table = Table({"attack": ["base", "lira"], "auc": [0.75, 0.8]})
        >>> print(table)
        attack  auc
        base    0.750
        lira    0.800
        >>> list(table.rows())[1]["auc"]
        0.8
    """

    def __init__(self, columns: Mapping[str, ArrayLike]) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        if len({len(values) for values in self._columns.values()}) > 1:
            raise InputError("table: its columns have different lengths.")

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of columns; `height` is the number of rows."""
        return len(self._columns)

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as a dict of plain Python values."""
        for values in zip(*(column.tolist() for column in self._columns.values()), strict=True):
            yield dict(zip(self._columns, values, strict=True))

    def sorted_by(self, name: str) -> Table:
        """The same rows in the order of a column; rows with equal values keep their order."""
        order = np.argsort(self[name], kind="stable")
        return Table({key: column[order] for key, column in self._columns.items()})

    def head(self, rows: int) -> Table:
        """The first rows."""
        return Table({name: column[:rows] for name, column in self._columns.items()})

    def to_csv(self) -> str:
        """The table as CSV text; floats keep every digit.

        A text that a spreadsheet would take for a formula gets a leading ``'`` (`glasshouse.core.escape.cell_text`).
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(cell_text, self._columns))
        for row in self.rows():
            writer.writerow(cell_text(cell) if isinstance(cell, str) else cell for cell in row.values())
        return file.getvalue()

    def to_parquet(self) -> bytes:
        """The table as a parquet file (extra ``tables``)."""
        with needs_extra("to_parquet", package="pyarrow", extra="tables"):
            import pyarrow
            import pyarrow.parquet
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table({name: column.tolist() for name, column in self.items()}), buffer)
        return buffer.getvalue()

    def to_pandas(self) -> Any:
        """A pandas data frame (extra ``tables``)."""
        with needs_extra("to_pandas", package="pandas", extra="tables"):
            import pandas
        return pandas.DataFrame(dict(self._columns))

    def __str__(self) -> str:
        cells = [[visible(name), *map(_cell, column.tolist())] for name, column in self._columns.items()]
        widths = [max(map(len, column)) for column in cells]
        lines = zip(*cells, strict=True)
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        head = "".join(f"<th>{html.escape(visible(name))}</th>" for name in self._columns)
        cells = (map(_cell, row.values()) for row in self.head(_SHOWN).rows())
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(one)}</td>" for one in row) + "</tr>" for row in cells)
        more = f"<p>{self.height} rows, of which {_SHOWN} are shown.</p>" if self.height > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"

    def __repr__(self) -> str:
        return f"Table({self.height} rows: {', '.join(self._columns)})"


def _cell(value: Any) -> str:
    return visible(f"{value:.3f}" if isinstance(value, float) else value)
