"""Edges and members: the test by permutation against counting by hand and against every possible draw."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.core.arrays import BoolArray, IntArray
from glasshouse.evaluation.checks.random_members import member_edges
from tests.benchmarks.scripts import benchmark


def by_hand(pairs: IntArray, members: BoolArray) -> tuple[float, float]:
    """Shares of edges of two members and of two others; each pair of nodes once, no node with itself."""
    edges = {frozenset(pair) for pair in pairs.T.tolist() if pair[0] != pair[1]}
    both = sum(all(members[node] for node in edge) for edge in edges)
    none = sum(not any(members[node] for node in edge) for edge in edges)
    return both / len(edges), none / len(edges)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_shares_are_those_counted_by_hand(seed: int) -> None:
    random = np.random.default_rng(seed)
    pairs, members = random.integers(12, size=(2, 30)), random.random(12) < 0.5
    found = member_edges(pairs, members, seed=seed)
    assert found is not None
    assert np.allclose((found.members, found.others), by_hand(pairs, members))


def test_over_all_possible_draws_small_p_values_are_as_rare_as_they_say() -> None:
    """Every one of the 210 draws of four nodes out of ten is the truth once; two hubs, so that counts are skewed."""
    pairs = np.array([[0, 0, 0, 0, 0, 1, 1, 1, 2, 8], [1, 2, 3, 4, 5, 6, 7, 8, 3, 9]])
    chances = []
    for draw, chosen in enumerate(itertools.combinations(range(10), 4)):
        found = member_edges(pairs, np.isin(np.arange(10), chosen), seed=draw)
        assert found is not None
        chances.append(found.p_value)
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(chances) <= level) <= level + 0.03  # the permutations are random
    assert np.mean(np.array(chances) <= 0.5) > 0.35


def test_equal_degrees_leave_one_count_and_no_edges_leave_nothing() -> None:
    ring = np.array([np.arange(60), (np.arange(60) + 1) % 60])
    halves = member_edges(ring, np.arange(60) < 30, seed=0)
    assert halves is not None
    assert halves.p_value == 0.001
    assert member_edges(np.array([[0, 1], [0, 1]]), np.arange(4) < 2, seed=0) is None  # loops only


def test_hubs_cause_no_alarm_and_snowballs_do() -> None:
    """A small version of benchmarks/statistics/blind.py."""
    blind = benchmark("blind")
    for pairs in (blind.graphs(200)["scale-free"], blind.graphs(200)["five stars"]):
        assert blind.alarms_on_edges(pairs, 200, 0.5, 60, balls=False) <= 2 / 60
    assert blind.alarms_on_edges(blind.graphs(400)["scale-free"], 400, 0.5, 5, balls=True) == 1.0
