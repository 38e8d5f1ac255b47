"""Tables as a user in a hurry has them: read right, or refused in one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.config.columns import TableSection
from glasshouse.config.encoding import read_records
from glasshouse.data.named import Dataset


def records(folder: Path, table: str, **keys: Any) -> Dataset:
    (folder / "d.csv").write_text(table)
    return read_records(TableSection.model_validate({"name": "file", "path": "d.csv"} | keys), folder)


def test_true_and_false_are_one_and_zero_in_features_and_members(tmp_path: Path) -> None:
    """Item 14 of issue 15: such a column was refused as text."""
    table = "age,married,owner,label,trained\n30,True,yes,a,True\n41.5,FALSE,no,b,false\n52, true ,1,a,yes\n"
    found = records(tmp_path, table, members="trained")
    assert found.population.x.tolist() == [[30, 1, 1], [41.5, 0, 0], [52, 1, 1]]
    assert found.members is not None
    assert found.members.tolist() == [True, False, True]
    assert found.remade == ()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("age,label,trained\n30,a,1\n31, ,0\n", "label: row 2: the label is empty. Fill it in, or leave the row out."),
        ("age,label,trained\n30,NaN,1\n31,a,0\n32,,1\n", "label: row 1 and 1 more: the label is empty."),
        ("age,label,trained\n30,a,1\n31,b,\n", "trained: row 2: the cell is empty."),
        ("age,label,trained\n30,a,1\n31,b,2\n", "trained: '2' is neither 1 nor 0"),
        ("age,trained\n30,1\n31,2\n", "has no column 'label'. Columns: age, trained."),
        ("label,trained\na,1\nb,0\n", "has no column of features."),
        ("age,label,trained\n30,a,1\n31,a,0\n", "population: all records have the label ['a']"),
    ],
)
def test_what_is_missing_is_named_by_its_row_and_column(tmp_path: Path, table: str, message: str) -> None:
    """Item 14 of issue 15: an empty label became a class of its own."""
    with pytest.raises(InputError) as caught:
        records(tmp_path, table, members="trained")
    assert str(caught.value).startswith(f"{tmp_path / 'd.csv'}: {message}")
    assert len(caught.value.faults) == 1


def test_a_table_with_everything_in_it_gives_the_stated_features(tmp_path: Path) -> None:
    table = (
        "\ufeffid;home town;born;height;owner;zip;label \n"
        'p1;"Oslo";1970-01-02;1,5;yes;0150;high\n'
        "p2;;1970-01-03;;no;0150;low \n"
        'p3;"two\nlines";1970-01-05;2,5;yes;5003; high\n'
    )
    found = records(tmp_path, table, id="id", categories="zip", groups=["home town", "height"], leave_out=["owner"])
    assert found.population.x.tolist() == [
        [0, 1, 0, 1, 1.5, 0, 1, 0],
        [1, 0, 0, 2, 2.0, 1, 1, 0],
        [0, 0, 1, 4, 2.5, 0, 0, 1],
    ]
    assert found.population.ids.tolist() == ["p1", "p2", "p3"]
    assert found.population.classes.tolist() == ["high", "low"]
    assert found.groups["home town"].tolist() == ["Oslo", "missing", "two\nlines"]
    np.testing.assert_array_equal(found.groups["height"], [1.5, np.nan, 2.5])
    assert found.remade == ("home town", "born", "height", "zip")
    assert "Numbers have a decimal comma." in found.notes


def test_a_group_stays_a_feature_unless_it_is_left_out(tmp_path: Path) -> None:
    table = "age,sex,label\n30,f,a\n40,m,b\n"
    assert records(tmp_path, table, groups="sex").population.x.shape == (2, 3)
    left = records(tmp_path, table, groups="sex", leave_out="sex")
    assert left.population.x.shape == (2, 1)
    assert left.groups["sex"].tolist() == ["f", "m"]


def test_names_of_columns_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = "age,label\n1,a\n2,b\n"
    for key in ("groups", "leave_out", "categories"):
        with pytest.raises(InputError, match="has no column 'agee'. Did you mean \"age\""):
            records(tmp_path, table, **{key: "agee"})
    with pytest.raises(InputError, match="'label' is the label, which is never a feature"):
        records(tmp_path, table, leave_out="label")
    with pytest.raises(InputError, match="id 'x' is repeated"):
        records(tmp_path, "who,age,label\nx,1,a\nx,2,b\n", id="who")


def test_two_files_are_members_and_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,label\n1,x\n2,y\n3,x\n")
    section = TableSection(name="file", train="a.csv", holdout="b.csv")
    (tmp_path / "b.csv").write_text("age,label\n4,y\n5,z\n")
    found = read_records(section, tmp_path)
    assert found.members is not None
    assert found.members.tolist() == [True, True, True, False, False]
    assert found.warnings == ("Only b.csv has the labels ['z'], so the target cannot know them.",)
    (tmp_path / "b.csv").write_text("age,label\n4,y.\n5,x.\n")
    with pytest.raises(InputError, match=r"the files have no label in common: \['x', 'y'\] and \['x.', 'y.'\]"):
        read_records(section, tmp_path)
    (tmp_path / "b.csv").write_text("age,label\n4,y\n5,\n")
    with pytest.raises(InputError, match=r"b.csv: label: row 2: the label is empty"):
        read_records(section, tmp_path)


def test_one_long_text_does_not_make_all_cells_as_wide(tmp_path: Path) -> None:
    """As an array of text, 20 000 cells with one of 100 000 characters would be 8 GB."""
    rows = "".join(f"{'z' * 100_000 if row == 7 else 'w'},{row % 2}\n" for row in range(20_000))
    assert records(tmp_path, "note,label\n" + rows).population.x.shape == (20_000, 2)


def test_parquet_and_csv_give_the_same_records(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    days = pandas.to_datetime(["2020-01-01 00:00", "2020-01-02 06:00", None, "2020-02-01 12:30"])
    frame = pandas.DataFrame(
        {
            "age": [1.5, None, 3.25, 4],
            "kids": [1, 2, 3, 4],
            "town": pandas.Categorical(["a", "b", None, "a"]),
            "owner": [True, False, True, True],
            "day": days,
            "label": [0, 1, 0, 1],
        }
    )
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    one, two = (read_records(TableSection(name="file", path=name), tmp_path) for name in ("d.csv", "d.parquet"))
    assert one.population.fingerprint() == two.population.fingerprint()
    assert one.population.x.shape == (4, 9)
    assert one.notes == two.notes


def test_a_table_of_a_regression_must_say_so(tmp_path: Path) -> None:
    table = "age,label\n" + "".join(f"{n},{n / 7:.3f}\n" for n in range(40))
    with pytest.raises(InputError, match="look like the targets of a regression. Say regression: true in the section"):
        records(tmp_path, table)
    population = records(tmp_path, table, regression=True).population
    assert population.regression
    assert population.y[:3].tolist() == [0.0, 0.143, 0.286]
    with pytest.raises(InputError, match="'low' is not a number, and a regression predicts numbers"):
        records(tmp_path, "age,label\n1,low\n2,high\n", regression=True)
