from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse import InputError
from glasshouse.evidence.tables import read_text_table

CELLS = st.text(alphabet="ab1.;,|\t\n\"' é", max_size=6).map(str.strip).filter(lambda cell: "\r" not in cell)


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS).filter(any), min_size=1, max_size=5),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
def test_whatever_the_separator_cells_come_back_as_they_were(
    rows: list[tuple[str, ...]], separator: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    lines = [separator.join(map(quoted, row)) for row in [("one", "two", "three"), *rows]]
    path.write_text("\n".join(lines) + "\n", newline="")
    found = read_text_table(path)
    assert found.separator == separator
    assert list(found.columns) == ["one", "two", "three"]
    assert list(zip(*found.columns.values(), strict=True)) == rows


def test_columns_without_a_name_and_rows_without_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",a,label,\n0,1,x,\n1,2,y,\n,,,\n")
    columns = read_text_table(path).columns
    assert columns == {"column 1": ["0", "1"], "a": ["1", "2"], "label": ["x", "y"], "column 4": ["", ""]}


def test_names_are_given_where_the_first_line_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "t.data"
    path.write_text("39, State-gov, x\n50, Private, y\n")
    assert read_text_table(path, names=["age", "work", "label"]).columns["age"] == ["39", "50"]
    with pytest.raises(InputError, match="line 1 has 3 fields, but there are names for 2"):
        read_text_table(path, names=["age", "work"])


def test_windows_files_are_read_and_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("sep=;\r\nstadt;n\r\nKöln;1\r\n".encode("cp1252"))
    found = read_text_table(path)
    assert found.foreign
    assert found.columns == {"stadt": ["Köln"], "n": ["1"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,a\n1,2\n", "the column 'a' is there twice"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 fields, but the header has 2"),
        (b'a,b\n"two\nlines",2\n1,2,3\n', "line 4 has 3 fields"),
        (b"PK\x03\x04\x00", "it holds zero bytes. Save it as CSV"),
        (b"", "has no rows"),
        (b"a,b\n" + b"x" * 200_000 + b",1\n", "is not a text table: field larger than field limit"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_text_table(path)
    assert len(caught.value.faults) == 1


def test_parquet_keeps_its_types_as_text_and_refuses_lists(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"a": [0.1, None], "b": [True, False], "c": [" x", None]}), path)
    assert read_text_table(path).columns == {"a": ["0.1", ""], "b": ["True", "False"], "c": ["x", ""]}
    parquet.write_table(arrow.table({"a": [[1], [2]]}), path)
    with pytest.raises(InputError, match="the column 'a' holds lists"):
        read_text_table(path)
    parquet.write_table(arrow.table([[1], [2]], names=["a", "a"]), path)
    with pytest.raises(InputError, match="the column 'a' is there twice"):
        read_text_table(path)
