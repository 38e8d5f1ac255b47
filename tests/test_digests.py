from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from glasshouse.digests import digest_arrays, row_digests

X = np.arange(12.0).reshape(4, 3) % 5
Y = np.array([0, 1, 0, 1])


def test_arrays_of_other_values_shapes_types_or_order_have_other_digests() -> None:
    arrays = [X, X + 1e-9, X.reshape(3, 4), X.astype(np.float32)]
    assert len({digest_arrays([one]) for one in arrays}) == 4
    assert digest_arrays([X, Y]) != digest_arrays([Y, X])


def test_layout_and_library_do_not_matter() -> None:
    assert digest_arrays([X]) == digest_arrays([np.asfortranarray(X)]) == digest_arrays([torch.from_numpy(X)])
    names = ["a", "b"]
    assert digest_arrays([np.array(names)]) == digest_arrays([np.array(names, dtype=object)])


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, scipy.sparse.csr_matrix])
def test_a_row_is_known_by_its_values_and_its_label_wherever_it_stands(kind: type) -> None:
    found = row_digests(kind(X), Y)
    order = np.array([3, 0, 2, 1])
    assert np.array_equal(row_digests(kind(X[order]), Y[order]), found[order])
    assert (row_digests(kind(X), 1 - Y) != found).all()
    changed = X.copy()
    changed[2, 1] += 1
    assert (row_digests(kind(changed), Y) != found).tolist() == [False, False, True, False]


def test_the_order_in_which_a_sparse_row_is_stored_does_not_matter() -> None:
    def stored(columns: list[int], values: list[float]) -> scipy.sparse.csr_matrix:
        return scipy.sparse.csr_matrix((values, columns, [0, 2]), shape=(1, 3))

    one, other = (row_digests(stored(*parts), np.array([0])) for parts in (([0, 2], [1.0, 2.0]), ([2, 0], [2.0, 1.0])))
    assert one[0] == other[0]
