"""Numbers as text for readers, rows as tables, and texts from files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glasshouse.core.table import Table


def percent(value: float, digits: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{digits}f} %"


def points(value: float, digits: int = 1) -> str:
    """A difference of two shares, in percentage points with its sign."""
    return signed(100 * value, digits)


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, as "−0.123"."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")  # without a minus before 0


def rate(value: float) -> str:
    """A wanted rate, with as many digits as it has: "1 %", "0.05 %"."""
    return f"{100 * value:.3g} %"


def whole(value: float) -> str:
    """A count, in groups of three: "1 234 567"."""
    return f"{round(value):,}".replace(",", "\u00a0")


def table_of(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Rows with the same names as columns: an interval is two of them, and what was not measured is NaN."""
    columns: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.items():
            cells = {name: value}
            if name.endswith("_interval"):
                ends = zip(("low", "high"), value or (None, None), strict=True)
                cells = {f"{name.removesuffix('_interval')}_{end}": cell for end, cell in ends}
            for column, cell in cells.items():
                columns.setdefault(column, []).append(np.nan if cell is None else cell)
    return Table({name: np.array(values) for name, values in columns.items()})


def texts_beside(module: str) -> dict[str, Any]:
    """The TOML file beside a module, by its ``__file__``: texts that the module fills in."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
