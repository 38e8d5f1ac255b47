from __future__ import annotations

import numpy as np

from glasshouse.data import row_batches
from glasshouse.data.features import recognised


def test_arrays_lists_and_empty_things_are_not_taken_for_records() -> None:
    for plain in (np.zeros((2, 1)), [[1.0], [2.0]], [], ["a", "b"], {"x": [1]}, "text", 3):
        assert recognised(plain) is None


def test_rows_are_asked_about_in_batches_of_a_size_each_once() -> None:
    for count in range(8):
        found = [rows.tolist() for rows in row_batches(np.zeros(count), count, 3)]
        assert found == [list(range(start, min(start + 3, count))) for start in range(0, count, 3)]
