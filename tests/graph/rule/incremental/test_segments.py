from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.graph.rule.incremental.segments import (
    bag_sum,
    distinct,
    expand,
    lookup,
    segment_sum,
    slices_within,
    starts_of,
)

COUNTS = st.lists(st.integers(0, 4), max_size=6)
NUMBERS = st.lists(st.integers(0, 9), max_size=12)


@given(ranges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=6))
def test_ranges_are_expanded_as_by_a_loop(ranges: list[tuple[int, int]]) -> None:
    start, count = torch.tensor(ranges, dtype=torch.long).reshape(-1, 2).unbind(1)
    positions, owners = expand(start, count)
    expected = [(first + step, owner) for owner, (first, many) in enumerate(ranges) for step in range(many)]
    assert list(zip(positions.tolist(), owners.tolist(), strict=True)) == expected


@given(counts=COUNTS)
def test_starts_are_where_the_owner_changes(counts: list[int]) -> None:
    owners = [owner for owner, count in enumerate(counts) for _ in range(count)]
    expected = [sum(counts[:owner]) for owner in range(len(counts) + 1)]
    assert starts_of(torch.tensor(owners, dtype=torch.long), len(counts)).tolist() == expected


@given(counts=COUNTS, weighted=st.booleans(), seed=st.integers(0, 9))
def test_bags_are_summed_as_by_a_loop(counts: list[int], weighted: bool, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    table = torch.randn(5, 3, generator=random, dtype=torch.float64)
    index = torch.randint(5, (sum(counts),), generator=random)
    weight = torch.randn(sum(counts), generator=random, dtype=torch.float64) if weighted else None
    start = torch.tensor([0, *counts]).cumsum(0)
    expected = torch.zeros(len(counts), 3, dtype=torch.float64)
    for bag in range(len(counts)):
        for j in range(int(start[bag]), int(start[bag + 1])):
            expected[bag] += table[index[j]] * (1.0 if weight is None else weight[j])
    torch.testing.assert_close(bag_sum(table, index, start, weight), expected)
    if weight is None:
        torch.testing.assert_close(segment_sum(table[index], start), expected)


@given(keys=NUMBERS, wanted=NUMBERS)
def test_values_are_found_where_they_are_and_nowhere_else(keys: list[int], wanted: list[int]) -> None:
    ordered = distinct(torch.tensor(keys, dtype=torch.long))
    assert ordered.tolist() == sorted(set(keys))
    positions, found = lookup(ordered, torch.tensor(wanted, dtype=torch.long))
    assert found.tolist() == [value in keys for value in wanted]
    assert ordered[positions[found]].tolist() == [value for value in wanted if value in keys]


@given(costs=st.lists(st.integers(0, 5), max_size=10), limit=st.integers(1, 8))
def test_slices_stay_within_the_limit_and_leave_nothing_out(costs: list[int], limit: int) -> None:
    slices = list(slices_within(torch.tensor(costs), limit))
    assert [at for part in slices for at in range(part.start, part.stop)] == list(range(len(costs)))
    assert all(sum(costs[part]) <= limit or part.stop - part.start == 1 for part in slices)
