"""Tables of evidence and of records from strangers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import InputError, read_evidence
from tests.hostile.files import csv, table

Rows = list[dict[str, str]]


def with_cell(row: int, **cells: str) -> Callable[[Rows], Rows]:
    return lambda rows: [*rows[:row], rows[row] | cells, *rows[row + 1 :]]


def with_column(**cells: str) -> Callable[[Rows], Rows]:
    return lambda rows: [row | cells for row in rows]


LONG = "x" * 100_000
FAULTS: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "an empty member": (with_cell(3, member=""), "member: empty for record 'r3' of the target, and not for all"),
    "another label": (
        with_cell(50, label="2"),
        "label: record 'r10' has the label '1' for the target and '2'",
    ),
    "two kinds": (with_column(logit_0="1", logit_1="2"), "has columns of loss and of logits; give one kind"),
    "a column twice": (with_column(**{" loss": "1"}), "the column 'loss' is there twice"),
    "a long id": (with_cell(3, id=LONG), "100000 characters"),
    "a long model": (with_cell(3, model=LONG), "is not in both"),
    "a long number": (with_cell(3, loss=LONG), "loss: 'xxx"),
    "an underscore": (with_cell(3, loss="1_0"), "loss: '1_0' is not a number"),
    "a long member": (with_cell(3, member=LONG), "member: 'xxx"),
    "5000 digits": (with_column(**{"logit_" + "1" * 5000: "1"}), "e.csv: "),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_hostile_table_is_one_short_line(name: str, tmp_path: Path) -> None:
    change, message = FAULTS[name]
    rows = change(table())
    if name == "5000 digits":
        rows = [{key: value for key, value in row.items() if key != "loss"} for row in rows]
    path = csv(tmp_path / "e.csv", rows)
    with pytest.raises(InputError, match=message) as caught:
        read_evidence(path)
    assert len(str(caught.value)) < 2100


def test_labels_written_in_two_ways_are_the_same_label(tmp_path: Path) -> None:
    path = csv(tmp_path / "e.csv", with_cell(50, label="1.0")(table()))
    assert read_evidence(path).evidence.records == 40


@pytest.mark.parametrize("every", [True, False], ids=["a model per row", "other records"])
def test_many_names_are_checked_in_linear_time(every: bool, tmp_path: Path) -> None:
    count = 20_000
    target = [("target", f"r{number}") for number in range(count)]
    others = [(f"s{number}" if every else "s", f"q{number}") for number in range(count)]
    lines = [f"{model},{record},1,0.5" for model, record in (*target, *others)]
    (tmp_path / "e.csv").write_text("model,id,member,loss\n" + "\n".join(lines) + "\n")
    started = time.process_time()
    with pytest.raises(InputError, match="is not in both"):
        read_evidence(tmp_path / "e.csv")
    assert time.process_time() - started < 10


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow.table(columns), path, **options)
    return path


def tidy() -> dict[str, Any]:
    return {name: [row[name] for row in table()] for name in table()[0]}


def test_parquet_text_that_is_not_unicode_is_one_line(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    ids = arrow.array([b"\xff\xfe"] * 200, type=arrow.binary())
    wrong = arrow.Array.from_buffers(arrow.string(), 200, ids.buffers())
    with pytest.raises(InputError, match=r"e\.parquet: is damaged, or is not a complete parquet file"):
        read_evidence(parquet(tmp_path / "e.parquet", tidy() | {"id": wrong}))


def test_parquet_columns_of_other_kinds_are_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="the column 'id' is of type binary; save text or numbers"):
        read_evidence(parquet(tmp_path / "e.parquet", tidy() | {"id": [b"a"] * 200}))


def test_a_parquet_table_says_the_same_as_its_csv(tmp_path: Path) -> None:
    first = read_evidence(parquet(tmp_path / "e.parquet", tidy()))
    second = read_evidence(csv(tmp_path / "e.csv", table()))
    assert (first.evidence.shadow_loss == second.evidence.shadow_loss).all()
    assert (first.evidence.ids == second.evidence.ids).all()
    np.testing.assert_array_equal(first.members, second.members)


def test_one_long_text_in_every_row_takes_its_memory_once(tmp_path: Path) -> None:
    import tracemalloc

    arrow = pytest.importorskip("pyarrow")
    same = arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(10_000, np.int32)), ["y" * 200_000])
    path = parquet(tmp_path / "e.parquet", {"id": same, "loss": [1.0] * 10_000})  # 2 GB, if each cell had its own
    assert path.stat().st_size < 1_000_000
    from glasshouse.evidence.tables import read_text_table

    tracemalloc.start()
    found = read_text_table(path).columns
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()
    assert len(found["id"]) == 10_000


def test_a_parquet_bomb_is_refused_by_what_it_says_of_itself(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from glasshouse.io.limits import memory_limit

    nothing = arrow.nulls(6_000_000, arrow.float64())
    path = parquet(tmp_path / "e.parquet", {"a": nothing, "b": nothing, "c": nothing})
    assert path.stat().st_size < 1_000_000
    told = "its columns unpack to 137.* MiB, and the limit is 100.0 MiB.*--memory 1GiB"
    with memory_limit("100MiB"), pytest.raises(InputError, match=told):
        read_evidence(path)
