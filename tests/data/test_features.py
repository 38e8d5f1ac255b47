"""Features of every kind against plain numpy arrays of the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from glasshouse import InputError, Population
from glasshouse.data.features import count_records, joined, plain_parts, select, table_of_numbers

VALUES = np.random.default_rng(0).integers(0, 3, size=(9, 2)).astype(np.float64)
KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {  # from an array, and back
    "array": (np.asarray, np.asarray),
    "tensor": (torch.from_numpy, np.asarray),
    "sparse": (scipy.sparse.csr_matrix, lambda x: x.toarray()),
    "pandas": (lambda x: pandas.DataFrame(x, columns=["a", "b"]), lambda x: x.to_numpy()),
    "polars": (lambda x: polars.DataFrame({"a": x[:, 0], "b": x[:, 1]}), lambda x: x.to_numpy()),
    "dict": (lambda x: {"a": x[:, 0], "b": x[:, 1]}, lambda x: np.stack([x["a"], x["b"]], axis=1)),
    "texts": (
        lambda x: np.array([f"{a} {b}" for a, b in x.tolist()], dtype=object),
        lambda x: np.array([text.split() for text in x], dtype=float).reshape(-1, 2),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@given(rows=st.lists(st.integers(0, 8), min_size=1, max_size=9))
def test_rows_are_those_of_the_array(kind: str, rows: list[int]) -> None:
    make, back = KINDS[kind]
    x, chosen = make(VALUES), np.array(rows)
    mask = np.isin(np.arange(9), chosen)
    assert count_records(x) == 9
    assert (back(select(x, chosen)) == VALUES[chosen]).all()
    assert (back(select(x, mask)) == VALUES[mask]).all()


@pytest.mark.parametrize("kind", KINDS)
@given(cut=st.integers(1, 8))
def test_two_parts_joined_are_the_whole(kind: str, cut: int) -> None:
    make, back = KINDS[kind]
    whole = joined(make(VALUES[:cut]), make(VALUES[cut:]))
    assert type(whole) is type(make(VALUES))
    assert (back(whole) == VALUES).all()


@pytest.mark.parametrize("kind", KINDS)
def test_records_have_equal_hashes_exactly_if_they_are_equal(kind: str) -> None:
    labels = np.array([0, 1, 0, 0, 1, 1, 0, 1, 0])
    found = Population(KINDS[kind][0](VALUES), labels).digests()
    for one in range(9):
        for other in range(9):
            same = labels[one] == labels[other] and (VALUES[one] == VALUES[other]).all()
            assert (found[one] == found[other]) == same


def test_a_table_with_text_has_the_same_hashes_from_pandas_and_polars() -> None:
    table = {"age": [30.0, 40.0, None], "job": ["cook", None, "clerk"], "note": ["a", "b" * 400, ""], "n": [1, 2, 3]}
    found = [Population(make(table), [0, 1, 0]) for make in (pandas.DataFrame, polars.DataFrame)]
    assert found[0].fingerprint() == found[1].fingerprint()
    assert (found[0].digests() == found[1].digests()).all()
    other = Population(pandas.DataFrame({**table, "job": ["cook", None, "nurse"]}), [0, 1, 0])
    assert other.fingerprint() != found[0].fingerprint()
    assert (other.digests() == found[0].digests()).tolist() == [True, True, False]


def test_words_that_move_between_columns_are_another_record() -> None:
    frames = [pandas.DataFrame({"a": [one], "b": [other]}) for one, other in (("ab", "c"), ("a", "bc"))]
    texts = [b"".join(part[0].encode() for part in plain_parts(frame)) for frame in frames]
    assert texts[0] == texts[1]
    both = pandas.concat(frames, ignore_index=True)
    assert len(set(Population(both, [0, 0], classes=[0, 1]).digests().tolist())) == 2


def test_whole_numbers_have_the_hash_of_equal_floats_and_large_ones_their_own() -> None:
    def found(x: Any) -> str:
        return Population(x, [0, 1]).fingerprint()

    small = np.array([[1, 2], [3, 4]])
    assert found(small) == found(small.astype(float)) == found(small.astype(np.uint8))
    large = np.array([[2**53, 0], [2**53 + 1, 0]])
    assert found(large) != found(large[::-1])
    assert len(set(Population(large, [0, 0], classes=[0, 1]).digests().tolist())) == 2


def test_parts_keep_ids_classes_and_categories() -> None:
    train = pandas.DataFrame({"job": pandas.Categorical(["cook", "clerk"]), "y": ["a", "b"], "id": ["x", "y"]})
    holdout = pandas.DataFrame({"id": ["z", "w"], "y": ["c", "a"], "job": pandas.Categorical(["nurse", "cook"])})
    population, members = Population.from_parts(Population(train, "y", ids="id"), Population(holdout, "y", ids="id"))
    assert population.ids.tolist() == ["x", "y", "z", "w"]
    assert population.classes.tolist() == ["a", "b", "c"]
    assert population.classes[population.y].tolist() == ["a", "b", "c", "a"]
    assert population.x["job"].tolist() == ["cook", "clerk", "nurse", "cook"]
    assert isinstance(population.x["job"].dtype, pandas.CategoricalDtype)
    assert members.tolist() == [True, True, False, False]


def test_parts_that_do_not_fit_are_refused_with_the_fix() -> None:
    numbers = Population([[0.0], [1.0]], [0, 1])
    cases: list[tuple[Any, Any, str]] = [
        (pandas.DataFrame({"a": [1]}), numbers, r"train: DataFrame is not a Population; give two of them"),
        (numbers, Population([[0.0, 1.0]] * 2, [0, 1]), r"shape \(1,\) in train and \(2,\) in holdout"),
        (numbers, Population(["a", "b"], [0, 1]), "shape"),
        (numbers, Population(torch.zeros(2, 1), [0, 1]), "in the same form"),
        (numbers, Population([[0.0], [1.0]], ["a", "b"]), "labels of train are numbers .* and those of holdout text"),
        (  # as in the files of UCI Adult
            Population([[0.0], [1.0]], ["<=50K", ">50K"]),
            Population([[0.0], [1.0]], ["<=50K.", ">50K."]),
            r"have no label in common \(<=50K and <=50K\.\); write them in the same way",
        ),
        (Population({"a": [1, 2]}, [0, 1]), Population({"b": [1, 2]}, [0, 1]), "holdout has no column 'a'"),
        (
            Population([[0.0], [1.0]], [0, 1], ids=["x", "y"]),
            Population([[0.0], [1.0]], [0, 1], ids=["y", "z"]),
            "the id 'y' is in train and in holdout",
        ),
    ]
    for train, holdout, message in cases:
        with pytest.raises(InputError, match=message):
            Population.from_parts(train, holdout)


def test_a_table_of_numbers_has_every_kind_of_number() -> None:
    from decimal import Decimal

    frames = [
        pandas.DataFrame({"a": [1, 2], "b": pandas.array([True, None], dtype="boolean"), "c": [0.5, None]}),
        polars.DataFrame({"a": [1, 2], "b": [True, None], "c": [Decimal("0.5"), None]}),
    ]
    for frame in frames:
        assert np.array_equal(
            table_of_numbers(frame, frame.columns), [[1, 1, 0.5], [2, np.nan, np.nan]], equal_nan=True
        )
