from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix, padded_size, side_by_side


def graphs(filled: float) -> list[Data]:
    random = torch.Generator().manual_seed(0)
    found = []
    for size in (5, 7):
        x = torch.randn(size, 6, generator=random) * (torch.rand(size, 6, generator=random) < filled)
        y = torch.randint(-1, 3, (size,), generator=random)
        found.append(Data(x=x, edge_index=torch.randint(size, (2, 9), generator=random), y=y))
    return found


@pytest.mark.parametrize("filled", [0.05, 1.0])
def test_features_lie_sparse_or_dense_and_come_back_the_same(filled: float) -> None:
    several = graphs(filled)
    batch = BatchedGraph.of(several)
    assert isinstance(batch.x, SparseMatrix) == (filled < 0.1)
    for k, graph in enumerate(several):
        padded = torch.zeros(batch.size, 6)
        padded[: len(graph.x)] = graph.x
        torch.testing.assert_close(batch.features_of(k), padded)


@pytest.mark.parametrize("sparse", [False, True])
def test_each_graph_is_multiplied_by_its_own_weights(sparse: bool) -> None:
    several = graphs(0.5)
    batch = BatchedGraph.of(several)
    weight = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1))
    found = batch.linear(side_by_side([graph.x for graph in several], batch.size, sparse=sparse), weight)
    for k, graph in enumerate(several):
        torch.testing.assert_close(found[k, : len(graph.x)], graph.x @ weight[k].T, atol=1e-5, rtol=1e-5)
        assert not found[k, len(graph.x) :].any()


def test_edges_and_labels_stay_within_their_graph_and_every_graph_weighs_the_same() -> None:
    several = graphs(1.0)
    batch = BatchedGraph.of(several)
    owner = batch.edge_index // batch.size
    assert torch.equal(owner[0], owner[1])
    place = batch.labelled // batch.size
    for k, graph in enumerate(several):
        assert torch.equal(batch.y[place == k], graph.y[graph.y >= 0])
        assert float(batch.weight[place == k].sum()) == pytest.approx(1.0)


@pytest.mark.parametrize(("nodes", "padded"), [(1, 64), (64, 64), (65, 128)])
def test_sizes_are_filled_up_to_the_next_multiple_of_64(nodes: int, padded: int) -> None:
    assert padded_size(nodes) == padded
