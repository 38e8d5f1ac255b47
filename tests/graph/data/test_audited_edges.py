"""Which edges are audited, and which other pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from glasshouse import InputError
from glasshouse.graph import CandidateEdges, candidate_edges, citation_graph


def keys(edge_index: torch.Tensor, n: int) -> set[int]:
    return set((edge_index[0] * n + edge_index[1]).tolist())


@pytest.mark.parametrize("others", ["distance", "random", "held out"])
def test_the_targets_graph_has_half_of_the_pairs_and_the_known_graph_none(others: str) -> None:
    data = citation_graph(nodes=150, classes=3)
    found = candidate_edges(data, count=40, others=others, seed=3)  # type: ignore[arg-type]
    n, edges = 150, keys(data.edge_index, 150)
    own = found.pairs[0] * n + found.pairs[1]
    assert found.present.sum() == 40
    assert len(set(own.tolist())) == 80
    assert set(own[found.present].tolist()) <= edges
    assert (set(own[~found.present].tolist()) <= edges) == (others == "held out")
    assert not set(own.tolist()) & keys(found.known.edge_index, n)
    target = keys(found.graph(found.present).edge_index, n)
    assert target <= edges
    assert len(edges - target) == (80 if others == "held out" else 0)
    again = candidate_edges(data, count=40, others=others, seed=3)  # type: ignore[arg-type]
    assert np.array_equal(again.pairs, found.pairs)


def test_non_edges_are_as_far_apart_as_edges_once_the_pairs_are_taken_out() -> None:
    data = citation_graph(nodes=200, classes=3)

    def counts(found: CandidateEdges) -> list[list[int]]:
        return [np.bincount(found.distance[who], minlength=7).tolist() for who in (found.present, ~found.present)]

    edges, matched = counts(candidate_edges(data, count=40, others="distance", seed=0))
    assert edges == matched
    edges, random = counts(candidate_edges(data, count=40, others="random", seed=0))
    assert np.dot(random, np.arange(7)) > np.dot(edges, np.arange(7))


def test_distances_are_counted_without_the_audited_pairs() -> None:
    ring = to_undirected(torch.stack([torch.arange(4), (torch.arange(4) + 1) % 4]))
    data = Data(x=torch.eye(4), edge_index=ring, y=torch.tensor([0, 1, 0, 1]), ids=["a", "b", "c", "d"])
    found = candidate_edges(data, count=1, others="random", seed=0)
    assert found.distance[found.present].tolist() == [3]  # the other way round the ring
    assert found.distance[~found.present].tolist() == [2]
    assert set(found.ids.tolist()) & {"a - c", "b - d"}


def test_requests_that_cannot_be_met_are_refused() -> None:
    data = citation_graph(nodes=80, classes=2)
    for wrong in (0, -3, 3.5, "30"):
        with pytest.raises(InputError, match="edges: .* is not a positive whole number"):
            candidate_edges(data, count=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Audit fewer"):
        candidate_edges(data, count=10_000)
    with pytest.raises(InputError, match='Use "distance", "random" or "held out"'):
        candidate_edges(data, count=3, others="far")  # type: ignore[arg-type]
    weighted = Data(**{**data.to_dict(), "edge_weight": torch.ones(data.edge_index.shape[1])})
    with pytest.raises(InputError, match="edges have values"):
        candidate_edges(weighted, count=3)
