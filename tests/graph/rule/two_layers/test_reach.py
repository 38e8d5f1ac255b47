from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.graph.rule.two_layers import graph as reach
from glasshouse.graph.rule.two_layers.graph import arrange, whole_graph
from tests.graph.rule.two_layers.plain_kernels import in_python
from tests.graph.simple_graphs import simple_cases, simple_graph

KERNELS = in_python(reach)


def rings(v: int, edges: list[list[int]], members: list[bool]) -> list[set[int]]:
    """The members within one, two and three steps of v, through members only."""
    found: list[set[int]] = [{v}]
    for _ in range(3):
        found.append(found[-1] | {b for a, b in edges if a in found[-1] and members[b]})
    return [one - {v} for one in found[1:]]


@given(case=simple_cases())
def test_rings_hold_the_members_within_so_many_steps_and_are_forgotten(case: object) -> None:
    data, mask = case.data, case.masks[0].numpy()  # type: ignore[attr-defined]
    graph = arrange(whole_graph(data), mask)
    space = reach.new_reach(len(mask))
    for v in range(len(mask)):
        KERNELS.find_two_hops(v, graph, space)
        assert space.size[2] == space.size[1]
        KERNELS.grow(2, graph, space)
        for size, expected in zip(space.size, rings(v, data.edge_index.T.tolist(), mask.tolist()), strict=True):
            assert set(space.nodes[:size].tolist()) == expected
            assert len(expected) == size
        assert space.slot[space.nodes[: space.size[2]]].tolist() == list(range(space.size[2]))
        KERNELS.release(v, space)
        assert (space.slot == -1).all()


@given(seed=st.integers(0, 50))
def test_only_behind_rows_that_change_does_a_ring_grow(seed: int) -> None:
    random = np.random.default_rng(seed)
    data = simple_graph(size=12, edges=18, seed=seed)
    mask = random.random(12) < 0.7
    graph, space = arrange(whole_graph(data), mask), reach.new_reach(12)
    KERNELS.find_one_hop(0, graph, space)
    near = space.nodes[: space.size[0]].tolist()
    changed = random.random(12) < 0.5
    KERNELS.grow_from(changed, graph, space)
    starts = {node for slot, node in enumerate(near) if changed[slot]}
    behind = {b for a, b in data.edge_index.T.tolist() if a in starts and mask[b]}
    assert set(space.nodes[: space.size[1]].tolist()) == set(near) | (behind - {0})
