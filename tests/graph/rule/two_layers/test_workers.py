from __future__ import annotations

import itertools
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.graph.rule.two_layers.graph import even_cuts, open_workers


@given(n=st.integers(0, 50), pieces=st.integers(1, 12))
def test_cuts_cover_everything_once_and_are_about_equal(n: int, pieces: int) -> None:
    cuts = even_cuts(n, pieces)
    assert [at for first, last in cuts for at in range(first, last)] == list(range(n))
    lengths = [last - first for first, last in cuts]
    assert max(lengths) - min(lengths) <= 1


def test_no_two_pieces_use_a_space_at_the_same_time() -> None:
    numbers, busy, seen = itertools.count(), set[int](), list[int]()
    lock = threading.Lock()

    def work(space: int, piece: int) -> None:
        with lock:
            assert space not in busy
            busy.add(space)
            seen.append(piece)
        time.sleep(0.001)
        with lock:
            busy.remove(space)

    with open_workers(3, lambda: next(numbers)) as workers:
        workers.each(work, range(20))
    assert sorted(seen) == list(range(20))
    assert next(numbers) == 3, "one space per thread"


def test_a_fault_of_one_piece_is_raised_and_its_space_is_free_again() -> None:
    with open_workers(1, lambda: "space") as workers:
        with pytest.raises(ZeroDivisionError):
            workers.each(lambda space, piece: 1 // piece, [1, 0])  # type: ignore[arg-type]
        assert workers.spaces.get_nowait() == "space"
