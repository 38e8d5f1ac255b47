from __future__ import annotations

import csv
import io

import pytest

from glasshouse import InputError
from glasshouse.core.table import Table

TABLE = Table({"id": ["a", "b,c", '"d'], "score": [0.1 + 0.2, 2.0, 2.0]})


def test_csv_keeps_every_digit_and_odd_text() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert [row["id"] for row in rows] == ["a", "b,c", '"d']
    assert float(rows[0]["score"]) == 0.1 + 0.2


def test_sorting_keeps_the_order_of_equals() -> None:
    assert TABLE.sorted_by("score")["id"].tolist() == ["a", "b,c", '"d']


def test_it_becomes_a_data_frame() -> None:
    pytest.importorskip("pandas")
    assert TABLE.to_pandas().shape == (3, 2)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="different lengths"):
        Table({"a": [1], "b": [1, 2]})
    assert repr(TABLE) == "Table(3 rows: id, score)"
    assert len(TABLE.head(1)["id"]) == 1


def test_parquet_holds_the_same_columns() -> None:
    import pyarrow.parquet

    table = Table({"id": ["a", "<b>"], "member": [True, False], "score": [0.1, 1e-300], "rank": [1, 2]})
    read = pyarrow.parquet.read_table(io.BytesIO(table.to_parquet())).to_pydict()
    assert read == {name: table[name].tolist() for name in table}
