"""Which library a user's object comes from, without importing that library."""

from __future__ import annotations

from typing import Any

__all__ = ["comes_from", "is_frame", "is_missing"]


def comes_from(value: Any, library: str) -> bool:
    """Whether an object's class, or one that it inherits from, belongs to a library.

    Example:
        >>> import numpy as np
        >>> comes_from(np.zeros(2), "numpy"), comes_from([0, 0], "numpy")
        (True, False)
    """
    return any(base.__module__.partition(".")[0] == library for base in type(value).__mro__)


def is_frame(value: Any) -> bool:
    """Whether an object is a data frame of pandas or polars.

    Example:
        >>> import pandas
        >>> is_frame(pandas.DataFrame({"age": [30]})), is_frame([[30]])
        (True, False)
    """
    return type(value).__name__ == "DataFrame" and (comes_from(value, "pandas") or comes_from(value, "polars"))


def is_missing(value: Any) -> bool:
    """Whether one cell of a table is empty: None, NaN, and what pandas writes for them.

    Example:
        >>> is_missing(None), is_missing(float("nan")), is_missing(0)
        (True, True, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value  # numpy's float64 is a float too
