from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from glasshouse.core.errors import InputError
from glasshouse.data import random_subsets
from glasshouse.graph.data.attacker_view import node_prior, noisy_edges, snowball_subset
from glasshouse.graph.data.synthetic import citation_graph
from tests.graph.random_graphs import Case, random_cases

GRAPH = citation_graph(nodes=300)
FRACTIONS = st.floats(0.05, 0.95)


def ring(size: int) -> Data:
    nodes = torch.arange(size)
    return Data(edge_index=torch.stack([nodes, (nodes + 1) % size]), num_nodes=size)


def pairs(data: Data) -> set[tuple[int, int]]:
    return {(a, b) for a, b in data.edge_index.t().tolist()}


@given(case=random_cases(), fraction=FRACTIONS, seed=st.integers(0, 9), branching=st.sampled_from([None, 1, 3]))
def test_a_snowball_has_exactly_the_size_asked_for_on_any_graph(
    case: Case, fraction: float, seed: int, branching: int | None
) -> None:
    size = len(case.data.x)
    wanted = round(fraction * size)
    if not 0 < wanted < size:
        with pytest.raises(InputError, match="none of them inside"):
            snowball_subset(case.data, fraction=fraction, seed=seed, branching=branching)
        return
    inside = snowball_subset(case.data, fraction=fraction, seed=seed, branching=branching)
    assert inside.shape == (size,)
    assert inside.sum() == wanted


@pytest.mark.parametrize("branching", [None, 1, 2])
def test_a_snowball_in_a_connected_graph_is_connected(branching: int | None) -> None:
    inside = snowball_subset(ring(50), fraction=0.4, seed=3, branching=branching)
    assert int((inside != np.roll(inside, 1)).sum()) == 2  # one arc of the ring


def test_a_new_snowball_starts_where_a_component_is_used_up() -> None:
    islands = Data(edge_index=torch.tensor([[0, 2, 4, 6], [1, 3, 5, 7]]), num_nodes=8)
    inside = snowball_subset(islands, fraction=0.75, seed=0).reshape(4, 2)
    assert sorted(inside.sum(axis=1).tolist()) == [0, 2, 2, 2]


def test_snowballs_keep_more_edges_than_random_draws() -> None:
    def kept(inside: np.ndarray) -> int:
        return int(inside[GRAPH.edge_index.numpy()].all(axis=0).sum())

    snowball = kept(snowball_subset(GRAPH, fraction=0.3, seed=0))
    assert snowball > 2 * kept(random_subsets(300, models=1, fraction=0.3, seed=0)[0])


def test_a_smaller_branching_goes_deeper_and_less_wide() -> None:
    """A hub with 20 chains of 10 nodes: all neighbours of the hub at once, or one chain after another."""
    chains = torch.arange(1, 201).reshape(20, 10)
    inner = torch.stack([chains[:, :-1].reshape(-1), chains[:, 1:].reshape(-1)])
    spokes = torch.stack([torch.zeros(20, dtype=torch.long), chains[:, 0]])
    data = Data(edge_index=torch.cat([spokes, inner], dim=1), num_nodes=201)

    def touched(branching: int | None) -> int:
        inside = snowball_subset(data, fraction=0.3, seed=0, branching=branching)
        return int(inside[chains.numpy()].any(axis=1).sum())

    assert touched(1) < touched(None) == 20


def test_the_same_seed_draws_the_same_snowball_and_another_another() -> None:
    first, again, other = (snowball_subset(GRAPH, fraction=0.5, seed=seed) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_shares_and_branchings_that_make_no_sense_are_refused() -> None:
    for fraction in (0.0, 1.0, 1.5, float("nan")):
        with pytest.raises(InputError, match="fraction"):
            snowball_subset(GRAPH, fraction=fraction, seed=0)
    with pytest.raises(InputError, match="branching: 0"):
        snowball_subset(GRAPH, fraction=0.5, seed=0, branching=0)
    with pytest.raises(InputError, match="outside 0 to 1"):
        snowball_subset(Data(edge_index=torch.tensor([[0], [2]]), num_nodes=2), fraction=0.5, seed=0)


@pytest.mark.parametrize(("drop", "add"), [(0.0, 0.0), (0.25, 0.0), (0.0, 0.25), (0.5, 0.5), (1.0, 0.0)])
def test_noise_drops_and_adds_exactly_the_shares_asked_for_and_stays_symmetric(drop: float, add: float) -> None:
    noisy = noisy_edges(GRAPH, drop=drop, add=add, seed=0)
    before, after = pairs(GRAPH), pairs(noisy)
    assert noisy.edge_index.shape[1] == len(after)
    assert len(before - after) == 2 * round(drop * len(before) / 2)
    assert len(after - before) == 2 * round(add * len(before) / 2)
    assert after == {(b, a) for a, b in after}
    assert not noisy.has_self_loops()


@given(case=random_cases(), drop=st.floats(0, 1), add=st.floats(0, 0.3), seed=st.integers(0, 9))
def test_noise_keeps_symmetry_self_loops_and_nodes_of_any_graph(case: Case, drop: float, add: float, seed: int) -> None:
    before = pairs(case.data)
    try:
        noisy = noisy_edges(case.data, drop=drop, add=add, seed=seed)
    except InputError as error:
        assert "do not fit" in str(error)  # noqa: PT017
        return
    after = pairs(noisy)
    assert noisy.num_nodes == case.data.num_nodes
    assert {edge for edge in after if edge[0] == edge[1]} == {edge for edge in before if edge[0] == edge[1]}
    if before == {(b, a) for a, b in before}:
        assert after == {(b, a) for a, b in after}
    assert torch.equal(noisy.x, case.data.x)
    assert before == pairs(case.data)


def test_the_noise_of_a_seed_is_the_same_every_time() -> None:
    first, again, other = (noisy_edges(GRAPH, drop=0.3, add=0.3, seed=seed).edge_index for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_other_things_said_of_single_edges_are_left_out_and_what_was_said_of_nodes_stays() -> None:
    labelled = GRAPH.clone()
    labelled.edge_label = torch.rand(labelled.num_edges)
    noisy = noisy_edges(labelled, drop=0.1, seed=0)
    assert "edge_label" not in noisy
    assert torch.equal(noisy.y, GRAPH.y)


@pytest.mark.parametrize("directed", [False, True])
def test_kept_edges_keep_their_values_and_added_ones_get_those_of_an_edge(directed: bool) -> None:
    source = torch.Generator().manual_seed(0)
    edges = torch.randint(30, (2, 60), generator=source)
    edges = torch.cat([edges, edges[:, :7], torch.tensor([[4, 4], [4, 4]])], dim=1)  # repeated edges and loops
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    count = edges.shape[1]
    weights = torch.arange(count) + 1.0
    data = Data(edge_index=edges, num_nodes=30, edge_weight=weights, edge_attr=torch.stack([weights, -weights], dim=1))
    same = noisy_edges(data, seed=0)
    assert Counter(valued(same)) == Counter(valued(data))
    noisy = noisy_edges(data, drop=0.4, add=0.4, seed=1)
    assert torch.equal(noisy.edge_attr, torch.stack([noisy.edge_weight, -noisy.edge_weight], dim=1))
    before, after = Counter(valued(data)), Counter(valued(noisy))
    old = pairs(data)
    for (a, b, weight), number in after.items():
        if (a, b) in old:
            assert before[a, b, weight] == number  # all copies of a kept edge, each with its own weight
        else:
            assert weight in weights.tolist()
            assert directed or after[b, a, weight] == number
    assert {edge[:2] for edge in after} - old
    assert old - {edge[:2] for edge in after}


def valued(data: Data) -> list[tuple[int, int, float]]:
    return [(a, b, w) for (a, b), w in zip(data.edge_index.T.tolist(), data.edge_weight.tolist(), strict=True)]


def test_noise_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        noisy_edges(GRAPH, drop=1.5, add=-0.1, seed=0)
    assert [fault.split(":")[0] for fault in caught.value.faults] == ["drop", "add"]
    full = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    with pytest.raises(InputError, match="2 nodes leave room for 0"):
        noisy_edges(full, add=1.0, seed=0)


def test_a_prior_by_degree_and_class_is_the_share_of_likely_members_among_such_nodes() -> None:
    data = citation_graph(nodes=400, classes=3)
    draws = np.array([snowball_subset(data, fraction=0.3, seed=seed, branching=2) for seed in range(40)])
    prior = node_prior(data, draws)
    degree = np.bincount(data.edge_index[1].numpy(), minlength=400)
    assert prior[degree >= 8].mean() > 1.2 * prior[degree <= 2].mean()  # a snowball reaches hubs more often
    assert prior.mean() == pytest.approx(0.3, abs=0.01)
    by_class = node_prior(data, draws, degree=False)
    for label in range(3):
        who = data.y.numpy() == label
        np.testing.assert_allclose(by_class[who], draws[:, who].mean())
    with pytest.raises(InputError, match="draws"):
        node_prior(data, draws[:, :5])
