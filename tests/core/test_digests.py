from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from glasshouse.core.digests import digest_arrays, row_digests

X = np.arange(12.0).reshape(4, 3) % 5
Y = np.array([0, 1, 0, 1])


def test_arrays_of_other_values_shapes_types_or_order_have_other_digests() -> None:
    arrays = [X, X + 1e-9, X.reshape(3, 4), X.astype(np.float32)]
    assert len({digest_arrays([one]) for one in arrays}) == 4
    assert digest_arrays([X, Y]) != digest_arrays([Y, X])


def test_layout_and_library_do_not_matter() -> None:
    assert digest_arrays([X]) == digest_arrays([np.asfortranarray(X)]) == digest_arrays([torch.from_numpy(X)])
    half = torch.from_numpy(X).to(torch.bfloat16)
    assert digest_arrays([half]) == digest_arrays([half.float()])
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


def test_texts_of_any_length_are_known_by_their_words_and_not_by_their_array() -> None:
    for texts in (["a", "bc"], ["a", "b" * 1000], ["", "é"]):
        kinds = [np.array(texts), np.array(texts, dtype=object)]
        assert digest_arrays([kinds[0]]) == digest_arrays([kinds[1]])
        assert digest_arrays([kinds[0]]) != digest_arrays([kinds[0][::-1]])
        assert (row_digests(kinds[0], Y[:2]) == row_digests(kinds[1], Y[:2])).all()
    moved = [digest_arrays([np.array(texts)]) for texts in (["a" * 300, "ab"], ["a" * 301, "b"])]
    assert moved[0] != moved[1]


def test_features_in_blocks_have_the_hash_of_the_whole() -> None:
    """Sixteen mebibytes are converted at a time."""
    x = np.arange(5_000_000, dtype=np.int32).reshape(-1, 2)
    assert digest_arrays([], features=[x]) == digest_arrays([x.astype(np.float64)])
    assert digest_arrays([x]) != digest_arrays([], features=[x])


def test_several_parts_of_a_record_count_together() -> None:
    found = row_digests([X, np.array(["a", "b", "a", "b"])], Y)
    assert found[0] != row_digests([X, np.array(["b", "b", "a", "b"])], Y)[0]
    assert (found[1:] == row_digests([X, np.array(["b", "b", "a", "b"])], Y)[1:]).all()
