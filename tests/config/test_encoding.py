from __future__ import annotations

from collections import Counter
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse import InputError
from glasshouse.config.columns import Column, read_column
from glasshouse.config.encoding import encode
from glasshouse.io.limits import memory_limit


def by_hand(column: Column, most: int) -> list[list[float]]:
    """The stated rule, cell by cell: the features of each record."""
    if column.kind != "text":
        present = [value for value in column.values.tolist() if value == value]  # type: ignore[union-attr]
        filled = [[value if value == value else median(present)] for value in column.values.tolist()]  # type: ignore[union-attr]
        if len(present) == len(filled):
            return filled
        return [[*row, float(value != value)] for row, value in zip(filled, column.values.tolist(), strict=True)]  # type: ignore[union-attr]
    counts = Counter(column.cells)
    kept = sorted(counts)
    if len(counts) > most:  # the most frequent ones; of equals, the later in the alphabet
        kept = sorted(sorted(sorted(counts, reverse=True), key=lambda cell: -counts[cell])[: most - 1])
    rows = [[float(cell == one) for one in kept] for cell in column.cells]
    return [[*row, float(not any(row))] for row in rows] if len(counts) > most else rows


@settings(max_examples=30)
@given(
    table=st.integers(2, 12).flatmap(
        lambda rows: st.lists(
            st.one_of(
                st.lists(st.sampled_from(["1", "2.5", "-7", "", "40"]), min_size=rows, max_size=rows),
                st.lists(st.sampled_from(["a", "b", "c", "d", "e", "", "?"]), min_size=rows, max_size=rows),
                st.lists(st.sampled_from(["yes", "no", ""]), min_size=rows, max_size=rows),
                st.lists(st.sampled_from(["2020-01-01", "2021-05-17"]), min_size=rows, max_size=rows),
            ),
            min_size=1,
            max_size=4,
        )
    ),
    most=st.integers(2, 6),
)
def test_features_are_those_of_the_stated_rule(table: list[list[str]], most: int) -> None:
    columns = [
        read_column(f"c{place}", cells, decimal=".", most=50, place="d.csv") for place, cells in enumerate(table)
    ]
    used = [column for column in columns if column.kind != "empty"]
    if not used:
        return
    found = encode(columns, most=most, standardise=False, place="d.csv")
    wanted = np.concatenate([np.array(by_hand(column, most)) for column in used], axis=1)
    np.testing.assert_array_equal(found.x, wanted)
    assert len(found.names) == len(set(found.names)) == found.x.shape[1]


def text(name: str, cells: list[str]) -> Column:
    return Column(name=name, kind="text", cells=cells)


def test_ids_are_noticed_and_rare_values_share_a_feature() -> None:
    names = text("name", [f"p{number}" for number in range(90)] + ["x"] * 10)
    number = Column(name="row", kind="number", cells=[""] * 100, values=np.arange(100.0))
    age = Column(name="age", kind="number", cells=[""] * 100, values=np.arange(100.0) % 40)
    found = encode([names, number, age], most=10, standardise=False, place="d.csv")
    assert found.x.shape == (100, 12)
    assert found.names[9] == "name: one of 82 rare values"
    assert [warning.split(":")[0] for warning in found.warnings] == ["name", "row"]
    assert "leave_out: [name], or id: name" in found.warnings[0]
    assert any("the 9 most frequent have a feature each" in note for note in found.notes)


def test_what_was_done_is_said() -> None:
    empty = Column(name="nothing", kind="empty", cells=["", ""])
    age = Column(name="age", kind="number", cells=["3", ""], values=np.array([3.0, np.nan]))
    found = encode([empty, age, text("town", ["a", "b"])], most=10, standardise=False, place="d.csv")
    said = " ".join(found.notes)
    assert "3 columns of the table are 4 features (numbers as they are: age; texts one-hot: town)" in said
    assert "uses all records and no membership" in said
    assert "median, and a second feature says where: age" in said
    assert "left out: nothing" in said


def test_numbers_are_standardised_where_wanted_and_a_constant_does_no_harm() -> None:
    age = Column(name="age", kind="number", cells=[], values=np.array([1.0, 3.0]))
    one = Column(name="one", kind="number", cells=[], values=np.array([7.0, 7.0]))
    owner = Column(name="owner", kind="truth", cells=[], values=np.array([1.0, 0.0]))
    found = encode([age, one, owner], most=10, standardise=True, place="d.csv")
    assert found.x.tolist() == [[-1, 0, 1], [1, 0, 0]]


def test_tables_without_features_or_with_far_too_many_are_refused() -> None:
    with pytest.raises(InputError, match="no column of features"):
        encode([Column(name="a", kind="empty", cells=[""])], most=10, standardise=False, place="d.csv")
    with (
        memory_limit(10),
        pytest.raises(InputError, match="the table has 2 features .* take 32 bytes"),
    ):
        encode([text("a", ["x", "y"])], most=10, standardise=False, place="d.csv")
