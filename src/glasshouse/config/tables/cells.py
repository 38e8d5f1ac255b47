"""What a cell of a table says: nothing, a number, a truth or a date."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Collection, Iterable
from typing import Literal

from glasshouse.errors import InputError, shortened

__all__ = ["EMPTY", "MARKS", "TRUTHS", "Decimal", "as_number", "date_reader", "decimal_signs", "is_number"]

Decimal = Literal[".", ","]

EMPTY = frozenset(
    {"", "nan", "none", "null", "na", "n/a", "#n/a", "<na>", "nat"}
)  # as spreadsheets and pandas write it
# what people write for an empty cell; only among numbers, truths and dates, for elsewhere it may be a word of its own
MARKS = EMPTY | {"?", "-", "--", ".", "*", "unknown", "missing", "n.a.", "nil", "not available"}
TRUTHS = {"true": 1.0, "yes": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "no": 0.0, "0": 0.0, "0.0": 0.0}

_SPACES = " '\u00a0\u202f"  # what else separates thousands
_NUMBERS: dict[str, re.Pattern[str]] = {
    ".": re.compile(rf"[+-]?(?=[.]?\d)(\d+|\d{{1,3}}([,{_SPACES}]\d{{3}})+)?([.]\d*)?(e[+-]?\d+)?", re.IGNORECASE),
    ",": re.compile(rf"[+-]?(?=,?\d)(\d+|\d{{1,3}}([.{_SPACES}]\d{{3}})+)?(,\d*)?(e[+-]?\d+)?", re.IGNORECASE),
}
_OTHERS = {".": str.maketrans("", "", "," + _SPACES), ",": str.maketrans(",", ".", "." + _SPACES)}

_TIME = r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + _TIME)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def is_number(cell: str, decimal: Decimal) -> bool:
    """Whether a cell is a finite number, written with this decimal sign.

    Example:
        >>> is_number("1,234.5", "."), is_number("1.234,5", "."), is_number("1.234,5", ",")
        (True, False, True)
    """
    return _NUMBERS[decimal].fullmatch(cell) is not None and math.isfinite(as_number(cell, decimal))


def as_number(cell: str, decimal: Decimal) -> float:
    """The number in a cell that holds one.

    Example:
        >>> as_number("1.234,5", ","), as_number("12 000", "."), as_number("2e3", ".")
        (1234.5, 12000.0, 2000.0)
    """
    return float(cell.translate(_OTHERS[decimal]))


def decimal_signs(cells: Iterable[str]) -> set[Decimal]:
    """The decimal signs with which all cells are numbers: one, both or none.

    Example:
        >>> sorted(decimal_signs(["1.5", "2"])), sorted(decimal_signs(["1,5"])), sorted(decimal_signs(["1", "2"]))
        (['.'], [','], [',', '.'])
    """
    signs: tuple[Decimal, ...] = (".", ",")
    cells = list(cells)
    return {sign for sign in signs if cells and all(is_number(cell, sign) for cell in cells)}


def date_reader(cells: Collection[str], *, place: str) -> Callable[[str], float] | None:
    """How to read these cells as dates, in days since 1970 (UTC where a zone is given); None if they are not dates.

    Known are ``2021-03-28``, ``2021/3/28``, ``28.3.2021`` and, if the days tell which number is the month,
    ``28/3/2021`` and ``3/28/2021``; each may have a time.

    Args:
        cells: different cells, without empty ones.
        place: the file and the column, for errors.

    Example:
        >>> read = date_reader(["1970-01-11", "1970-02-01 12:00"], place="visits.csv: day")
        >>> read("1970-01-11"), read("1970-02-01 12:00")
        (10.0, 31.5)
    """
    if cells and all(_YEAR_FIRST.fullmatch(cell) for cell in cells):
        return lambda cell: _days(cell, _YEAR_FIRST, (1, 2, 3), place)
    found = [_YEAR_LAST.fullmatch(cell) for cell in cells]
    known = [match for match in found if match is not None]
    if not known or len(known) < len(found):
        return None
    first, second = (max(int(match[number]) for match in known) for number in (1, 3))
    dotted = all(match[2] == "." for match in known)  # with points the day comes first everywhere
    if not dotted and first <= 12 and second <= 12:
        raise InputError(
            f"{place}: {shortened(min(cells))} does not tell the day from the month. Write dates as 2021-03-28, or "
            f"leave the column out."
        )
    order = (4, 3, 1) if dotted or first > 12 else (4, 1, 3)
    return lambda cell: _days(cell, _YEAR_LAST, order, place)


def _days(cell: str, form: re.Pattern[str], order: tuple[int, int, int], place: str) -> float:
    match = form.fullmatch(cell)
    assert match is not None  # noqa: S101 (every cell was matched before)
    clock = match.groups()[-4:]
    hour, minute, second = (int(part or 0) for part in clock[:3])
    try:
        year, month, day = (int(match[number]) for number in order)
        zone = datetime.timezone(_offset(clock[3]))
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=zone)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{place}: {shortened(cell)} is not a date: {error}.") from None
    return (moment - _EPOCH) / datetime.timedelta(days=1)


def _offset(zone: str | None) -> datetime.timedelta:
    if zone is None or zone == "Z":
        return datetime.timedelta(0)
    sign = -1 if zone[0] == "-" else 1
    return sign * datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
