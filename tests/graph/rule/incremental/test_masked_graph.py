from __future__ import annotations

from collections import Counter

import torch
from hypothesis import given

from glasshouse.graph.models.tensor_cache import open_memory
from glasshouse.graph.rule.incremental.graph import (
    Adjacency,
    EdgeCopies,
    PairWeights,
    coalesce,
    coalesced,
    mask_graph,
)
from tests.graph.random_graphs import Case, random_cases


def listed(lists: Adjacency, size: int, mask: int) -> Counter[tuple[int, int]]:
    """How often each (node, other) of one mask occurs, numbered as in the graph."""
    found: Counter[tuple[int, int]] = Counter()
    for node in range(mask * size, (mask + 1) * size):
        for entry in range(int(lists.start[node]), int(lists.start[node + 1])):
            found[node - mask * size, int(lists.other[entry]) - mask * size] += int(lists.weight[entry])
    return found


@given(case=random_cases())
def test_edges_are_counted_once_each_and_loops_are_kept_apart(case: Case) -> None:
    size, pairs = int(case.data.num_nodes), Counter(map(tuple, case.data.edge_index.T.tolist()))
    edges = coalesce(case.data.edge_index, size, torch.float64)
    between = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
    for order, weight in ((edges.by_receiver, edges.weight_by_receiver), (edges.by_source, edges.weight_by_source)):
        assert dict(zip(map(tuple, order.T.tolist()), weight.tolist(), strict=True)) == between
    assert edges.by_receiver[1].tolist() == sorted(edges.by_receiver[1].tolist())
    assert edges.by_source[0].tolist() == sorted(edges.by_source[0].tolist())
    assert edges.loops.tolist() == [pairs[node, node] for node in range(size)]


@given(case=random_cases())
def test_under_each_mask_a_node_hears_members_and_sends_to_members(case: Case) -> None:
    size, pairs = int(case.data.num_nodes), Counter(map(tuple, case.data.edge_index.T.tolist()))
    graph = mask_graph(coalesce(case.data.edge_index, size, torch.float64), case.masks)
    for mask, members in enumerate(case.masks.tolist()):
        senders = {(b, a): count for (a, b), count in pairs.items() if a != b and members[a]}
        receivers = {(a, b): count for (a, b), count in pairs.items() if a != b and members[b]}
        assert listed(graph.sources, size, mask) == senders
        assert listed(graph.receivers, size, mask) == receivers
        degree = graph.degree[mask * size : (mask + 1) * size].tolist()
        assert degree == [sum(count for (node, _), count in senders.items() if node == v) for v in range(size)]


def test_edges_are_sorted_once_for_all_questions_in_one_memory() -> None:
    edges = torch.tensor([[1, 0], [0, 1]])
    with open_memory():
        assert coalesced(edges, 2, torch.float32) is coalesced(edges, 2, torch.float32)


def test_weights_of_repeated_edges_are_added_up_and_the_last_self_loop_counts_where_layers_take_one() -> None:
    copies = EdgeCopies.of(torch.tensor([[0, 0, 0, 1, 1], [1, 1, 0, 0, 0]]), 3)
    weights = PairWeights.of(copies, torch.tensor([1.0, 2.0, 5.0, 7.0, 11.0]))
    assert weights.between(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 2])).tolist() == [3.0, 18.0, 0.0]
    looped = PairWeights.of(EdgeCopies.of(torch.tensor([[1, 1], [1, 1]]), 2), torch.tensor([5.0, 3.0]))
    assert looped.loops().tolist() == [0.0, 8.0]
    assert looped.loops(none=1.0).tolist() == [1.0, 3.0]
