"""Features of every kind that a population may hold become a few columns of finite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix, random_array

from glasshouse.evaluation.checks.random_members import few_columns, ranked

NUMBERS = np.random.default_rng(0).normal(size=(40, 3))
TEXTS = np.array([f"patient {number % 7} of ward {number % 3}" for number in range(40)])
FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(40) % 5, NUMBERS[:, 0], np.nan),
        "day": pd.date_range("2020-01-01", periods=40),
        "ward": pd.Categorical(["a", "b"] * 20),
        "text": TEXTS,
        "well": [True, False] * 20,
    }
)


@pytest.mark.parametrize(
    "x",
    [
        NUMBERS,
        NUMBERS.reshape(40, 3, 1, 1),
        torch.from_numpy(NUMBERS).to(torch.bfloat16),
        csr_matrix(NUMBERS),
        FRAME,
        TEXTS,
        TEXTS.astype(object)[:, None],
        np.where(NUMBERS > 1, np.inf, NUMBERS) * 1e300,
        np.full((40, 2), np.nan),
        np.random.default_rng(1).normal(size=(40, 3000)).astype(np.float32) * 1e30,
        np.random.default_rng(1).integers(255, size=(40, 200), dtype=np.uint8),
        random_array((40, 30_000), density=0.01, format="csr"),
        {"input_ids": np.arange(400).reshape(40, 10), "attention_mask": torch.ones(40, 10, dtype=torch.long)},
        {"input_ids": np.arange(400).reshape(40, 10), "age": NUMBERS[:, 0], "text": TEXTS.astype(object)},
    ],
    ids=[
        *(
            "array",
            "images",
            "bfloat16",
            "sparse",
            "frame",
            "texts",
            "objects",
            "huge",
            "nan",
            "wide",
            "bytes",
            "words",
        ),
        *("tokens", "tokens and more"),
    ],
)
def test_any_features_become_a_few_finite_columns(x: Any) -> None:
    columns = few_columns(x, np.random.default_rng(0))
    assert columns.shape[0] == 40
    assert columns.shape[1] <= 128
    assert np.isfinite(columns).all()
    assert np.isfinite(ranked(columns)).all()


def test_who_lacks_a_value_and_on_which_day_a_record_was_made_are_columns() -> None:
    columns = few_columns(FRAME, np.random.default_rng(0))
    lacking = np.isnan(FRAME["age"].to_numpy()).astype(float)
    assert any(np.array_equal(column, lacking) for column in columns.T)
    assert any(np.array_equal(np.argsort(column), np.arange(40)) for column in columns.T)


def test_token_numbers_are_names_and_not_amounts() -> None:
    """Records with the same words in another order are alike, whichever numbers the words have."""
    random = np.random.default_rng(0)
    kinds = np.arange(40) % 2
    tokens = np.stack([random.permutation(np.arange(8) + 500 * (kind == 0) + 20 * kind) for kind in kinds])
    columns = few_columns({"input_ids": tokens}, random)
    for kind in (0, 1):
        assert np.ptp(columns[kinds == kind], axis=0).max() < 1e-9
    assert np.abs(columns[0] - columns[1]).max() > 1


def test_wide_features_keep_distances() -> None:
    """Principal components of a random sketch: two groups that differ in every column stay apart."""
    random = np.random.default_rng(0)
    group = np.arange(60) % 2
    x = random.normal(size=(60, 5000)) + 0.5 * group[:, None]
    columns = few_columns(x, random)
    assert max(abs(np.corrcoef(column, group)[0, 1]) for column in columns.T) > 0.9


def test_ranks_have_no_constant_columns_and_no_units() -> None:
    x = np.column_stack([NUMBERS, np.ones(40)])
    assert np.allclose(ranked(x), ranked(np.exp(x)))
    assert ranked(x).shape == (40, 3)
    assert np.allclose(ranked(x).std(axis=0), 1)
