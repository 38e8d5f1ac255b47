from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from glasshouse.graph.rule.two_layers import graph as plan
from glasshouse.graph.rule.two_layers.graph import CSR, arrange, has_self_loops, is_simple, whole_graph
from tests.graph.random_graphs import Case
from tests.graph.rule.two_layers.plain_kernels import in_python
from tests.graph.simple_graphs import simple_cases, simple_graph


def neighbours(graph: CSR, u: int) -> tuple[set[int], set[int]]:
    """The members next to u, and the others."""
    border = graph.start[u] + graph.degree[u]
    return set(graph.columns[graph.start[u] : border].tolist()), set(
        graph.columns[border : graph.start[u + 1]].tolist()
    )


@given(case=simple_cases(), seed=st.integers(0, 9))
def test_flips_keep_the_members_first_in_every_row(case: Case, seed: int) -> None:
    mask, edges = case.masks[0].numpy(), case.data.edge_index.T.tolist()
    graph = arrange(whole_graph(case.data), mask)
    for v in np.random.default_rng(seed).integers(len(mask), size=6):
        in_python(plan).flip(int(v), graph)
        for u in range(len(mask)):
            inside, outside = neighbours(graph, u)
            assert inside == {b for a, b in edges if a == u and graph.member[b]}
            assert outside == {b for a, b in edges if a == u and not graph.member[b]}


def test_arranging_leaves_the_whole_graph_as_it_is() -> None:
    graph = whole_graph(simple_graph(size=8, edges=12, seed=0))
    arranged = arrange(graph, np.ones(8, np.bool_))
    assert (arranged.degree == np.diff(graph.start)).all()
    assert not graph.degree.any()
    assert not graph.member.any()


def test_edges_one_way_and_edges_twice_are_not_simple_and_loops_are_seen() -> None:
    def graph(*pairs: tuple[int, int]) -> Data:
        return Data(edge_index=torch.tensor(pairs).T, num_nodes=3, y=torch.zeros(3))

    assert is_simple(graph((0, 1), (1, 0), (2, 2)))
    assert not is_simple(graph((0, 1)))
    assert not is_simple(graph((0, 1), (0, 1), (1, 0), (1, 0)))
    assert has_self_loops(graph((0, 1), (2, 2)))
    assert whole_graph(graph((0, 1), (1, 0), (2, 2))).columns.tolist() == [1, 0]
