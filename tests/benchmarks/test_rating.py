"""A small version of benchmarks/statistics/rating.py: page and gate agree, and records do not lower the rating."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.scripts import benchmark

RATING = benchmark("rating")


def test_page_and_gate_agree_on_runs_of_all_kinds() -> None:
    found, wrong = RATING.agreement(40)
    assert wrong == 0
    assert {word for word, _ in found} >= {"High exposure", "Some exposure", "No leak shown", "Inconclusive"}
    assert {code for _, code in found} == {0, 3, 4}


@pytest.mark.parametrize("leak", ["normal, AUC 0.92", "perfect", "tied"])
def test_more_records_of_the_same_leak_never_lower_the_rating(leak: str) -> None:
    """Of 8 runs each, one may be otherwise by chance."""
    sizes = (60, 200, 300, 900)
    shares = np.array([RATING.levels(RATING.LEAKS[leak], records, runs=8) for records in sizes])
    assert (np.diff(8 * shares.round(6), axis=0) > -1.5).all(), shares
    assert shares[-1].tolist() == [1.0, 1.0]


def test_a_leak_at_the_limit_is_not_high_and_none_is_shown_without_one() -> None:
    """5 % and two standard errors of so few runs; the benchmark has hundreds."""
    shown, high = RATING.levels(RATING.LEAKS["none"], 250, runs=40)
    assert shown <= 0.12
    assert high == 0
    assert RATING.levels(RATING.at_the_limit, 400, runs=20)[1] <= 0.1


def test_rare_records_that_leak_make_the_rating_high_among_many_that_do_not() -> None:
    found = RATING.audited(RATING.LEAKS["none"], 2500, seed=0, rare=40)
    assert found.worst_cell is not None
    assert found.worst_cell.name == "class 2"
    assert RATING.levels(RATING.LEAKS["none"], 2500, runs=2, rare=40) == (1.0, 1.0)
