from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from glasshouse.graph.rule.incremental import balls
from glasshouse.graph.rule.incremental.balls import Ball, Paths, draw_rings
from glasshouse.graph.rule.incremental.graph import MaskedGraph, coalesce, mask_graph
from tests.graph.random_graphs import Case, random_cases

Pairs = Counter[tuple[int, int]]


def union(case: Case) -> tuple[MaskedGraph, Pairs, list[bool]]:
    """The union of all masks, its edges between different nodes, and its members."""
    size, members = int(case.data.num_nodes), case.masks.reshape(-1).tolist()
    graph = mask_graph(coalesce(case.data.edge_index, size, torch.float64), case.masks)
    copies = [(mask * size + a, mask * size + b) for mask in range(2) for a, b in case.data.edge_index.T.tolist()]
    return graph, Counter((a, b) for a, b in copies if a != b), members


def reached(v: int, hops: int, edges: Pairs, members: list[bool]) -> set[int]:
    found = {v}
    for _ in range(hops):
        found |= {b for a, b in edges if a in found and members[b]}
    return found


def rows(ball: Ball, target: int) -> list[int]:
    return ball.node[ball.target == target].tolist()


def messages(paths: Paths, inner: Ball, outer: Ball) -> Counter[tuple[int, int, int]]:
    found: Counter[tuple[int, int, int]] = Counter()
    for source, receiver, weight in zip(
        paths.source.tolist(), paths.receiver.tolist(), paths.weight.tolist(), strict=True
    ):
        assert int(inner.target[source]) == int(outer.target[receiver])
        found[int(inner.target[source]), int(inner.node[source]), int(outer.node[receiver])] += int(weight)
    return found


def expected_messages(
    targets: Tensor, balls: list[set[int]], edges: Pairs, members: list[bool]
) -> Counter[tuple[int, int, int]]:
    return Counter(
        {
            (place, a, b): count
            for place, v in enumerate(targets.tolist())
            for (a, b), count in edges.items()
            if a in balls[place] and (members[b] or (b == v and a != v))
        }
    )


@given(case=random_cases(), radius=st.integers(1, 3))
def test_balls_hold_the_members_that_a_target_reaches_through_members(case: Case, radius: int) -> None:
    graph, edges, members = union(case)
    targets = torch.arange(len(members))
    for hops, ball in enumerate(draw_rings(graph, targets, radius=radius).balls):
        assert ball.keys.tolist() == sorted(set(ball.keys.tolist()))
        assert ball.node[ball.centre].tolist() == targets.tolist()
        for v in range(len(members)):
            assert set(rows(ball, v)) == reached(v, hops, edges, members)


@pytest.mark.parametrize("places", [0, 10**9], ids=["searched", "in a table"])
@given(case=random_cases(), radius=st.integers(1, 2))
def test_paths_are_the_edges_between_the_balls_and_an_added_target_receives_too(
    case: Case, radius: int, places: int
) -> None:
    graph, edges, members = union(case)
    targets = torch.arange(len(members))
    with patch.object(balls, "_SPARSE", places):
        rings = draw_rings(graph, targets, radius=radius)
    for hops in range(radius):
        inner = [reached(v, hops, edges, members) for v in range(len(members))]
        found = messages(rings.paths(hops, hops + 1), rings.balls[hops], rings.balls[hops + 1])
        assert found == expected_messages(targets, inner, edges, members)
    last = rings.balls[radius]
    whole = [reached(v, radius, edges, members) for v in range(len(members))]
    found = messages(rings.paths(radius, radius), last, last)
    expected = expected_messages(targets, whole, edges, members)
    assert found == Counter({key: count for key, count in expected.items() if key[2] in whole[key[0]]})


@given(case=random_cases())
def test_a_toggle_changes_the_degrees_of_those_that_the_target_sends_to(case: Case) -> None:
    graph, edges, members = union(case)
    rings = draw_rings(graph, torch.arange(len(members)), radius=2)
    for ball in rings.balls[1:]:
        for target, node, change in zip(
            ball.target.tolist(), ball.node.tolist(), ball.degree_change.tolist(), strict=True
        ):
            assert change == edges[target, node] * (-1 if members[target] else 1)


def test_paths_that_are_never_drawn_are_refused() -> None:
    edges = coalesce(torch.tensor([[0, 1], [1, 0]]), 2, torch.float32)
    rings = draw_rings(mask_graph(edges, torch.ones(1, 2, dtype=torch.bool)), torch.tensor([0]), radius=1)
    for inner, outer in ((0, 0), (1, 0)):
        with pytest.raises(LookupError, match=f"from ball {inner} to ball {outer}"):
            rings.paths(inner, outer)


@given(case=random_cases())
def test_paths_into_a_row_are_in_the_order_of_its_senders(case: Case) -> None:
    """Kernels walk along both lists at once; an added target, which is not among the senders, may stand anywhere."""
    graph = mask_graph(coalesce(case.data.edge_index, int(case.data.num_nodes), torch.float64), case.masks)
    targets = torch.arange(len(graph.members))
    rings = draw_rings(graph, targets, radius=2)
    for inner, outer in ((0, 1), (1, 2), (2, 2)):
        paths, source = rings.paths(inner, outer), rings.balls[inner]
        for row, node in enumerate(rings.balls[outer].node.tolist()):
            sent = paths.source[paths.start[row] : paths.start[row + 1]]
            added = (source.node[sent] == targets[source.target[sent]]) & ~rings.removes[source.target[sent]]
            names = source.node[sent][~added].tolist()
            listed = graph.sources.other[graph.sources.start[node] : graph.sources.start[node + 1]].tolist()
            assert names == sorted(set(names))
            assert set(names) <= set(listed)
            assert listed == sorted(listed)
            assert int(added.sum()) <= 1
