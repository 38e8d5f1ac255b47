from __future__ import annotations

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.config.encoding import as_labels


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["0", "1", "10"], [0, 1, 10]),
        (["1.0", "0.0", "-1"], [1, 0, -1]),
        (["True", "FALSE"], [True, False]),
        (["yes", "no"], ["yes", "no"]),
        (["01", "1"], ["01", "1"]),  # as numbers two classes would become one
        (["0.5", "1"], ["0.5", "1"]),
        (["none", "some"], ["none", "some"]),
    ],
)
def test_labels_are_what_a_users_own_program_would_have(cells: list[str], wanted: list[object]) -> None:
    found = as_labels(cells, decimal=".", place="d.csv: label")
    assert found.tolist() == wanted
    assert found.dtype.kind == np.array(wanted).dtype.kind


@pytest.mark.parametrize(
    ("cells", "decimal", "message"),
    [
        (
            [f"{number / 7:.4f}" for number in range(1000)],
            ".",
            "1000 different numbers in 1000 records look like the targets of a regr",
        ),
        (
            [f"{number / 7:.4f}".replace(".", ",") for number in range(100)] * 50,
            ",",
            "look like the targets of a regression",
        ),
        ([str(number) for number in range(500)] * 2, ".", "look like the targets of a regression"),
        ([f"person {number}" for number in range(50)], ".", "50 different labels in 50 records are not classes"),
    ],
)
def test_targets_of_a_regression_and_names_are_refused(cells: list[str], decimal: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_labels(cells, decimal=decimal, place="d.csv: label")  # type: ignore[arg-type]


def test_a_hundred_numbered_classes_are_classes() -> None:
    assert len(set(as_labels([str(n) for n in range(100)] * 20, decimal=".", place="d.csv: label").tolist())) == 100
