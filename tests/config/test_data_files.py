from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.config.data_files import read_population


def test_an_archive_gives_records_ids_and_members(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, x=np.zeros((3, 2)), y=[0, 1, 1], ids=["a", "b", "c"], members=[1, 0, 1])
    population, members = read_population(path)
    assert population.ids.tolist() == ["a", "b", "c"]
    assert members is not None
    assert members.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [0, 1]}, "has no array 'x'"),
        ({"x": np.zeros((2, 1)), "y": [0, 0]}, "d.npz: population: all records have the label"),
        ({"x": np.zeros((2, 1)), "y": [0, 1], "members": [1, 0, 1]}, "d.npz: members: shape"),
        ({"x": np.array([{}, {}]), "y": [0, 1]}, "pickled objects"),
    ],
)
def test_an_archive_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_population(tmp_path / "d.npz")


def test_true_and_false_are_one_and_zero_in_features_and_members(tmp_path: Path) -> None:
    """Item 14 of issue 15: such a column was refused as text."""
    path = tmp_path / "d.csv"
    path.write_text("age,married,owner,label,trained\n30,True,yes,a,True\n41.5,FALSE,no,b,false\n52, true ,1,a,yes\n")
    population, members = read_population(path, member="trained")
    assert population.x.tolist() == [[30, 1, 1], [41.5, 0, 0], [52, 1, 1]]
    assert members is not None
    assert members.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("age,label,trained\n30,a,1\n,b,0\n", "age: row 2: the cell is empty. Fill it in, or leave the row out."),
        ("age,label,trained\nNaN,a,1\nn/a,b,0\n1,b,0\n", "age: row 1 and 1 more: the cell is empty."),
        ("age,label,trained\nTrue,a,1\n,b,0\n", "age: row 2: the cell is empty."),
        ("age,label,trained\n30,a,1\n31, ,0\n", "label: row 2: the cell is empty."),
        ("age,label,trained\n30,a,1\n31,b,\n", "trained: row 2: the cell is empty."),
        ("age,label,trained\n30,a,1\n31,b,2\n", "trained: '2' is neither 1 nor 0"),
    ],
)
def test_an_empty_cell_is_named_by_its_row_and_column(tmp_path: Path, table: str, message: str) -> None:
    """Item 14 of issue 15: it was called text, or an empty label became a class of its own."""
    path = tmp_path / "d.csv"
    path.write_text(table)
    with pytest.raises(InputError) as caught:
        read_population(path, member="trained")
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_column_of_text_with_an_empty_cell_is_still_text(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("town,label\nOslo,a\n,b\n")
    with pytest.raises(InputError, match="town: holds text; features are numbers"):
        read_population(path)


def test_tables_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("age,label,trained\n1,a,1\nold,b,0\n")
    with pytest.raises(InputError, match="age: holds text; features are numbers"):
        read_population(path, member="trained")
    with pytest.raises(InputError, match="has no column 'target'. Columns: age, label, trained"):
        read_population(path, label="target")
    path.write_text("label\na\nb\n")
    with pytest.raises(InputError, match="no column of features"):
        read_population(path)
    with pytest.raises(InputError, match="no such file"):
        read_population(tmp_path / "none.csv")
    (tmp_path / "d.txt").write_text("")
    with pytest.raises(InputError, match="records are read from"):
        read_population(tmp_path / "d.txt")
    (tmp_path / "d.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match="not a complete .npz"):
        read_population(tmp_path / "d.npz")


def test_a_table_of_a_regression_must_say_so(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("age,label\n" + "".join(f"{n},{n / 7:.3f}\n" for n in range(40)))
    with pytest.raises(InputError, match="look like the targets of a regression. Say regression: true in the section"):
        read_population(path)
    population, _ = read_population(path, regression=True)
    assert population.regression
    assert population.y[:3].tolist() == [0.0, 0.143, 0.286]
    assert len(read_population(path, regression=False)[0].classes) == 40
    path.write_text("age,label\n1,low\n2,high\n")
    with pytest.raises(InputError, match="predicts real numbers, but the targets are of type"):
        read_population(path, regression=True)
