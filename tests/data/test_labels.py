from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import polars
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glasshouse import InputError, Population
from glasshouse.data.labels import as_ids, as_labels

X = np.zeros((4, 1))
WORDS = ["a", "b", "a", "b"]
GOOD: dict[str, Any] = {
    "a list": WORDS,
    "an array": np.array(WORDS),
    "objects": np.array(WORDS, dtype=object),
    "a column": pandas.Series(WORDS),
    "a column of strings": pandas.Series(WORDS, dtype="string"),
    "categories": pandas.Series(WORDS, dtype="category"),
    "a column of polars": polars.Series(WORDS),
    "categories of polars": polars.Series(WORDS, dtype=polars.Categorical),
}
MISSING: dict[str, Any] = {
    "None": ["a", "b", None, "b"],
    "NaN among texts": ["a", "b", float("nan"), "b"],
    "NaN written as text by numpy": np.array(["a", "b", np.nan, "b"]),
    "an empty text": ["a", "b", " ", "b"],
    "NaN among numbers": [0.0, 1.0, np.nan, 1.0],
    "None among numbers": [0, 1, None, 1],
    "NaN of a column": pandas.Series(["a", "b", None, "b"]),
    "NA of pandas": pandas.Series(["a", "b", pandas.NA, "b"], dtype="string"),
    "NA of whole numbers": pandas.Series([0, 1, None, 1], dtype="Int64"),
    "no category": pandas.Series(["a", "b", None, "b"], dtype="category"),
    "null of polars": polars.Series(["a", "b", None, "b"]),
    "null among whole numbers of polars": polars.Series([0, 1, None, 1]),
    "no time": pandas.Series(pandas.to_datetime(["2020-01-01", "2021-01-01", None, "2021-01-01"])).astype(object),
}


@pytest.mark.parametrize("kind", GOOD)
def test_labels_are_the_same_in_every_form(kind: str) -> None:
    population = Population(X, GOOD[kind])
    assert (population.y.tolist(), population.classes.tolist()) == ([0, 1, 0, 1], ["a", "b"])
    assert population.classes.dtype.kind == "U"


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_label_is_named_with_what_to_do(kind: str) -> None:
    with pytest.raises(InputError, match=r"the label of record 2 is missing \(.*\)\. Leave such records out") as caught:
        Population(X, MISSING[kind])
    assert "\n" not in str(caught.value)


def test_how_many_labels_are_missing_is_said() -> None:
    with pytest.raises(InputError, match="the label of record 1 and of 2 more is missing"):
        as_labels(["a", None, None, None])


def test_numbers_and_truth_values_stay_what_they_are() -> None:
    assert as_labels([0, 1]).dtype == np.int64
    assert as_labels([True, False]).dtype == np.bool_
    assert as_labels([0, 1.5]).dtype == np.float64
    assert as_labels(torch.tensor([0, 1])).dtype == np.int64
    assert as_labels(pandas.Series([0, 1], dtype="Int64")).dtype == np.int64
    assert as_labels(np.array([0, 1], dtype=object)).dtype == np.int64


def test_texts_and_numbers_together_are_refused() -> None:
    with pytest.raises(InputError, match="record 0 has 'a', record 1 has 1"):
        as_labels(["a", 1, "a", 1])


def test_labels_without_an_order_are_refused_and_others_of_any_type_are_taken() -> None:
    with pytest.raises(InputError, match="labels of type complex cannot be put in an order"):
        as_labels(np.array([1j, 2j], dtype=object))
    days = pandas.Series(pandas.to_datetime(["2020-01-01", "2021-01-01"] * 2))
    assert len(Population(X, days).classes) == 2
    assert len(Population(X, days.astype(object)).classes) == 2


def test_one_hot_rows_and_a_column_of_one_get_their_fix() -> None:
    with pytest.raises(InputError, match=r"shape \(4, 2\).*y.argmax\(axis=1\)"):
        Population(X, np.eye(2)[[0, 1, 0, 1]])
    with pytest.raises(InputError, match=r"shape \(4, 1\).*y.ravel\(\)"):
        Population(X, pandas.DataFrame({"label": [0, 1, 0, 1]}))


def test_several_targets_are_not_taken_for_one_hot_rows() -> None:
    with pytest.raises(InputError, match=r"such as y\[:, 0\], and audit several targets one by one"):
        Population(np.zeros((3, 1)), np.array([[0, 1], [1, 1], [0, 0]]))


def test_a_table_without_records_is_refused() -> None:
    with pytest.raises(InputError, match="population: there are no records"):
        Population(pandas.DataFrame({"age": [], "y": []}), "y")


def test_a_text_in_place_of_a_label_or_an_id_is_refused_before_it_costs_memory() -> None:
    long = ["x" * 100_000, *WORDS[1:]]
    with pytest.raises(InputError, match="the label of record 0 has 100000 characters, and 256 is the most"):
        Population(X, long)
    with pytest.raises(InputError, match="the id of record 0 has 100000 characters"):
        Population(X, WORDS, ids=["x" * 100_000, "b", "c", "d"])


@pytest.mark.parametrize("empty", [None, float("nan"), pandas.NA, pandas.NaT, " "])
def test_a_missing_id_is_named(empty: Any) -> None:
    with pytest.raises(InputError, match="record 1 has no id"):
        Population(X, WORDS, ids=["a", empty, "c", "d"])
    with pytest.raises(InputError, match="record 1 has no id"):
        Population(X, WORDS, ids=pandas.Series(["a", empty, "c", "d"]))


@given(st.lists(st.text("ab \té", max_size=4) | st.sampled_from(["x" * 256, "x" * 257, "\U0001f40d"]), min_size=1))
def test_ids_of_an_array_of_text_are_those_of_a_list(given: list[str]) -> None:
    """Of a million texts no Python objects are made; a list goes the plain way."""
    said: list[Any] = []
    for ids in (given, np.array(given), np.array(given).astype("<U400")):
        try:
            found = as_ids(ids, len(given), place="ids")
            said.append((found.tolist(), found.dtype))
        except InputError as error:
            said.append((error.faults, None))
    assert said[0] == said[1] == said[2]


def test_positions_take_no_more_room_than_their_digits() -> None:
    assert as_ids(None, 1000, place="ids").tolist() == [str(at) for at in range(1000)]
    assert as_ids(None, 1000, place="ids").dtype == "<U4"
