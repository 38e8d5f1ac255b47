from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.config.columns import TableSection, read_rows


def test_two_files_stand_below_each_other_whatever_the_order_of_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,label\n1,x\n2,y\n")
    (tmp_path / "b.csv").write_text("label;age\nx;3\n")
    rows = read_rows(TableSection(name="file", train="a.csv", holdout="b.csv"), tmp_path)
    assert rows.columns == {"age": ["1", "2", "3"], "label": ["x", "y", "x"]}
    with pytest.raises(InputError, match=r"b.csv: age: row 1: is odd"):
        rows.refuse("age", [2], "is odd")
    (tmp_path / "b.csv").write_text("label;size\nx;3\n")
    with pytest.raises(InputError, match=r"b.csv: has no column 'age', but the other file has it"):
        read_rows(TableSection(name="file", train="a.csv", holdout="b.csv"), tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.xlsx", "", r"records are read from .npz, .parquet or text tables"),
        ("d.pkl", "", r"records are read from"),
        (
            "d.csv",
            "39,x\n40,y\n",
            "has no column 'label'. Columns: 39, x. If the first line is a record, name the columns",
        ),
        ("d.csv", "a^label\n40^y\n", r"Columns: a\^label. If cells are not separated as they should be, set data.sep"),
        ("d.csv", "a,Label\n40,y\n", "has no column 'label'. Did you mean \"Label\"?"),
    ],
)
def test_files_that_do_not_fit_are_one_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_rows(TableSection(name="file", path=name), tmp_path).check(["label"])
    with pytest.raises(InputError, match="no such file"):
        read_rows(TableSection(name="file", path="none.csv"), tmp_path)
