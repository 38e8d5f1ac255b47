from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.config.columns import file_decimal, read_column


def column(cells: list[str], *, as_text: bool = False) -> Any:
    return read_column("c", cells, decimal=".", most=3, as_text=as_text, place="d.csv")


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "2.5", "-3e2"], "number", [1, 2.5, -300]),
        (["1", "N/A", "?", "", "2"], "number", [1, np.nan, np.nan, np.nan, 2]),
        (["0", "1", ""], "number", [0, 1, np.nan]),
        (["True", "false", "YES"], "truth", [1, 0, 1]),
        (["1970-01-02", "-", "1970-01-03"], "date", [1, np.nan, 2]),
        (["a", "b", "?"], "text", None),
        (["0", "1", "2", "3+"], "text", None),
        (["?", "?"], "text", None),
        (["", "NaN", "null"], "empty", None),
    ],
)
def test_a_column_is_what_all_its_cells_are(cells: list[str], kind: str, values: list[float] | None) -> None:
    found = column(cells)
    assert found.kind == kind
    if values is None:
        assert found.values is None
    else:
        np.testing.assert_array_equal(found.values, values)


def test_a_few_words_among_many_numbers_are_refused_by_row() -> None:
    with pytest.raises(InputError, match="d.csv: c: row 3: '>90' is not a number, but most cells of the column are"):
        column(["1", "2", ">90", "3", "4"])
    assert column(["1", "2", ">90", "3", "4"], as_text=True).kind == "text"


def test_groups_are_numbers_or_text_and_an_empty_cell_is_named() -> None:
    assert column(["1", ""]).groups.tolist()[0] == 1.0
    assert column(["a", "", "None"]).groups.tolist() == ["a", "missing", "missing"]
    assert column(["True", "False"]).groups.tolist() == ["True", "False"]


@pytest.mark.parametrize(
    ("columns", "separator", "wanted"),
    [
        ({"a": ["1,5"], "b": ["7"]}, ";", ","),
        ({"a": ["1.5"], "b": ["7"]}, ";", "."),
        ({"a": ["1,234"]}, ";", ","),
        ({"a": ["1,234"]}, ",", "."),
        ({"a": ["1,234"], "b": ["1.5"]}, ";", "."),
        ({"a": ["1.234"], "b": ["1,5"]}, ";", ","),
        ({"a": ["x"]}, ";", "."),
    ],
)
def test_one_decimal_sign_for_a_whole_file(columns: dict[str, list[str]], separator: str, wanted: str) -> None:
    assert file_decimal(columns, separator=separator, place="d.csv") == wanted


def test_two_decimal_signs_in_one_file_are_refused() -> None:
    with pytest.raises(InputError, match="the column 'a' has a decimal comma and 'b' a decimal point"):
        file_decimal({"a": ["1,5"], "b": ["1.5"]}, separator=";", place="d.csv")
