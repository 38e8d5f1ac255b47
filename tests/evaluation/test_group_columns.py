"""Columns that divide records: what is accepted, and how numbers are cut."""

from __future__ import annotations

import numpy as np
import pytest

from glasshouse.core.errors import InputError
from glasshouse.evaluation.groups import as_groups, bands


def test_all_faults_of_columns_are_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        as_groups({"age": [1, 2], "member": [1, 0, 1], "base_score": [1, 2, 3], "": [1, 2, 3]}, 3)
    assert len(caught.value.faults) == 4
    assert "'age' has shape (2,)" in caught.value.faults[0]
    with pytest.raises(InputError, match="not a mapping"):
        as_groups([["f", "m"]], 2)  # type: ignore[arg-type]
    assert as_groups(None, 3) == {}


def test_numbers_are_cut_into_quartiles_and_ties_stay_together() -> None:
    values = np.repeat(np.arange(20), [100, *[1] * 19])
    places, names = bands(values)
    assert names == ("0", "1–19")
    assert places.tolist() == [0] * 100 + [1] * 19
    places, names = bands(np.random.default_rng(0).permutation(400) / 7)
    assert len(names) == 4
    assert np.bincount(places).tolist() == [100, 100, 100, 100]


def test_few_numbers_texts_truths_and_empty_cells_are_groups_as_they_are() -> None:
    assert bands(np.array([2, 0, 2]))[1] == ("0", "2")
    assert bands(np.array([True, False]))[1] == ("False", "True")
    assert bands(np.array(["10", "2", "10"]))[1] == ("2", "10")  # classes in the order of their numbers
    assert bands(np.array(["10", "2", "10"]))[0].tolist() == [1, 0, 1]
    places, names = bands(np.array(["b", None, "a"], dtype=object))
    assert names == ("a", "b", "missing")
    assert places.tolist() == [1, 2, 0]
    assert bands(np.array([1.5, np.nan]))[1] == ("1.5", "missing")
    assert bands(np.array([3, None, 4], dtype=object))[1] == ("3", "4", "missing")
