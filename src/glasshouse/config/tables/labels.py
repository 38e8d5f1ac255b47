"""The labels of a table, as the user's own program would have them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.config.tables.cells import Decimal, as_number, is_number
from glasshouse.errors import InputError, shortened
from glasshouse.population.labels import short_texts

__all__ = ["NO_LABEL", "as_labels", "as_targets"]

NO_LABEL = frozenset({"", "nan", "null", "na", "n/a", "#n/a", "<na>"})  # "none" may be a class

_WHOLE = re.compile(r"(-?(?:0|[1-9]\d{0,15}))(?:\.0*)?")
_FEW = 20  # different values that can be classes whatever they look like
_PER_CLASS = 10  # records per value, on average, below which many numbers are not classes


def as_targets(cells: list[str], *, decimal: Decimal, place: str) -> NDArray[Any]:
    """[N] real numbers that a model predicts.

    Example:
        >>> as_targets(["2", "1,5"], decimal=",", place="d.csv: price")
        array([2. , 1.5])
    """
    wrong = [cell for cell in cells if not is_number(cell, decimal)]
    if wrong:
        raise InputError(f"{place}: {shortened(wrong[0])} is not a number, and a regression predicts numbers.")
    return np.array([as_number(cell, decimal) for cell in cells])


def as_labels(cells: list[str], *, decimal: Decimal, place: str) -> NDArray[Any]:
    """[N] labels: whole numbers as such, true and false as such, anything else as text.

    So they are equal to the classes of a model that the user has trained on the same table. Labels that look like the
    target of a regression, or like names, are refused.

    Args:
        cells: [N] none of them empty.
        decimal: the decimal sign of the file.
        place: the file and the column, for errors.

    Example:
        >>> as_labels(["2", "10.0", "2"], decimal=".", place="d.csv: label")
        array([ 2, 10,  2])
        >>> as_labels(["True", "false"], decimal=".", place="d.csv: label")
        array([ True, False])
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
