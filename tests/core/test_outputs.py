from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from glasshouse import InputError
from glasshouse.core.outputs import (
    check_order_of_outputs,
    column_order_note,
    looks_like_probabilities,
    looks_like_probability_column,
    unwrapped,
)

LOGITS = torch.tensor([[1.0, -1.0, 0.0], [0.0, 2.0, 0.5]])


class Outputs(NamedTuple):
    logits: torch.Tensor
    auxiliary: torch.Tensor


@pytest.mark.parametrize(
    "answer",
    [
        LOGITS,
        (LOGITS, torch.zeros(3)),
        [LOGITS, torch.zeros(3)],
        {"loss": None, "logits": LOGITS},
        {"out": LOGITS},
        OrderedDict(logits=LOGITS, hidden=torch.zeros(2)),
        SimpleNamespace(logits=LOGITS),
        Outputs(LOGITS, torch.zeros(2, 3)),
        ({"logits": LOGITS},),
        (torch.tensor(0.3), LOGITS),  # a loss in front
        (None, LOGITS, LOGITS + 1),
        {"loss": torch.tensor(0.3), "out": LOGITS},
    ],
)
def test_an_answer_is_found_in_what_models_wrap_around_it(answer: Any) -> None:
    assert unwrapped(answer) is LOGITS


@pytest.mark.parametrize(
    "answer",
    [
        LOGITS,
        (LOGITS, torch.zeros(2, 16)),
        (LOGITS, LOGITS),
        (torch.tensor(0.3), LOGITS, torch.zeros(2, 16)),
        (torch.zeros(2, 16), torch.zeros(2, 8)),  # no array has three columns: its width is refused elsewhere
        {"hidden": torch.zeros(2, 16), "logits": LOGITS},
        Outputs(LOGITS, torch.zeros(2, 16)),
        [[0.0, 1.0, 2.0]],
    ],
)
def test_several_arrays_are_fine_if_the_first_may_be_the_logits(answer: Any) -> None:
    check_order_of_outputs(answer, 3)


@pytest.mark.parametrize(
    ("answer", "classes"),
    [
        ((torch.zeros(2, 16), LOGITS), 3),
        ([np.zeros((2, 16)), np.zeros((2, 3))], 3),
        ((torch.tensor(0.3), torch.zeros(2, 16), LOGITS), 3),
        ((torch.zeros(2, 16), torch.zeros(2, 1)), 2),
        ((torch.zeros(2, 16), torch.zeros(2)), 2),
    ],
)
def test_features_in_front_of_the_logits_are_refused(answer: Any, classes: int) -> None:
    with pytest.raises(InputError, match="return the logits first"):
        check_order_of_outputs(answer, classes)


def test_rows_in_a_list_stay_rows() -> None:
    rows = [np.zeros(3), np.ones(3)]
    assert unwrapped(rows) is rows
    assert unwrapped([[0.0, 1.0]]) == [[0.0, 1.0]]


def test_a_mapping_without_logits_is_refused_with_its_keys() -> None:
    with pytest.raises(InputError, match="'hidden', 'embedding'; expected a key 'logits'"):
        unwrapped({"hidden": LOGITS, "embedding": LOGITS})


@given(hnp.arrays(np.float64, (7, 4), elements=st.floats(-80, 80)))
def test_softmax_rows_are_probabilities_and_their_logarithms_are_not(logits: np.ndarray) -> None:
    tensor = torch.from_numpy(logits)
    for kind in (torch.float64, torch.float32, torch.float16):
        assert looks_like_probabilities(tensor.to(kind).softmax(dim=1))
    assert not looks_like_probabilities(tensor.log_softmax(dim=1))


def test_one_row_that_is_no_distribution_decides() -> None:
    rows = np.full((5, 2), 0.5)
    assert looks_like_probabilities(rows)
    rows[3] = (0.5, 0.6)
    assert not looks_like_probabilities(rows)
    assert not looks_like_probabilities(np.full((2, 2), np.nan))


def test_a_column_is_read_by_what_fits_the_labels() -> None:
    random = np.random.default_rng(0)
    labels = (np.arange(200) < 140).astype(np.int64)
    clear = np.clip(np.where(labels == 1, 0.8, 0.3) + random.normal(scale=0.2, size=200), 0, 1)
    assert looks_like_probability_column(clear, labels)
    votes = np.where(random.random(200) < 0.85, labels, 1 - labels)  # a hard vote that is often wrong
    assert looks_like_probability_column(votes.astype(float), labels)
    weak = np.full(200, np.log(0.7 / 0.3))  # of a model that learned the share of class 1 and nothing else
    assert not looks_like_probability_column(weak, labels)
    assert looks_like_probability_column(np.full(200, 0.7), labels)
    assert not looks_like_probability_column(random.normal(size=200), labels)


def test_columns_in_another_order_are_noticed_and_poor_models_are_not() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(4, size=400)
    classes = np.array(["a", "b", "c", "d"])
    assert column_order_note(labels, labels, classes) == ()
    note = column_order_note((labels + 1) % 4, labels, classes)[0]
    assert note == (
        "The model answers right for 0 % of records, and for 100 % if its columns are put into another order. Columns "
        "must be in the order of the population's classes (a, b, c, d)."
    )
    for _ in range(50):
        assert column_order_note(random.integers(4, size=400), labels, classes) == ()  # an untrained model
    assert column_order_note(np.zeros(400, dtype=np.int64), labels, classes) == ()  # one that answers one class alone
