from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse import InputError
from glasshouse.config.columns import as_number, date_reader, is_number

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(max_examples=40)
@given(number=NUMBERS)
def test_numbers_as_python_writes_them_come_back(number: float) -> None:
    assert is_number(repr(number), ".")
    assert as_number(repr(number), ".") == number
    assert as_number(repr(number).replace(".", ","), ",") == number


@settings(max_examples=40)
@given(number=st.integers(-(10**12), 10**12), digits=st.integers(0, 99))
def test_numbers_with_thousands_come_back(number: int, digits: int) -> None:
    english = f"{number:,}.{digits:02d}"
    german = english.translate(str.maketrans(",.", ".,"))
    wanted = float(f"{number}.{digits:02d}")
    for cell, sign in ((english, "."), (german, ","), (german.replace(".", "\u00a0"), ",")):
        assert is_number(cell, sign)  # type: ignore[arg-type]
        assert as_number(cell, sign) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize("cell", ["", "1.5.2", "12,34", "1_000", "0x1F", "inf", "nan", "1e999", "-", ".", "1 2", "5%"])
def test_what_is_not_a_finite_number_is_not_one(cell: str) -> None:
    assert not is_number(cell, ".")


FORMS = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%MZ", "%d.%m.%Y %H:%M"]


@settings(max_examples=40)
@given(
    moments=st.lists(st.datetimes(datetime.datetime(1900, 1, 1)), min_size=1, max_size=5), form=st.sampled_from(FORMS)
)
def test_dates_are_days_since_1970(moments: list[datetime.datetime], form: str) -> None:
    cells = [f"{moment:{form}}" for moment in moments]
    read = date_reader(cells, place="d.csv: day")
    assert read is not None
    wanted = [np.datetime64(datetime.datetime.strptime(cell, form)) for cell in cells]
    days = [(moment - np.datetime64("1970-01-01")) / np.timedelta64(1, "D") for moment in wanted]
    np.testing.assert_allclose([read(cell) for cell in cells], days, rtol=0, atol=1e-9)


def test_a_zone_counts_and_the_days_tell_the_month() -> None:
    read: Any = date_reader(["1970-01-02T02:00+02:00"], place="d.csv: day")
    assert read("1970-01-02T02:00+02:00") == 1.0
    for cells in (["1/2/1970", "13/2/1970"], ["2/1/1970", "2/13/1970"]):
        read = date_reader(cells, place="d.csv: day")
        assert read(cells[0]) == 31
    assert date_reader(["13/13/1970 noon"], place="d.csv: day") is None
    assert date_reader([], place="d.csv: day") is None


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["3/4/2021", "4/4/2021"], "'3/4/2021' does not tell the day from the month"),
        (["2021-02-30"], "'2021-02-30' is not a date"),
        (["13/13/2021"], "'13/13/2021' is not a date"),
        (["2021-02-03 25:00"], "is not a date"),
    ],
)
def test_dates_that_cannot_be_are_refused(cells: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read = date_reader(cells, place="d.csv: day")
        assert read is not None
        read(cells[0])
