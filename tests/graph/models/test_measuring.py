from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.models.profile import measured_reach


def rounds(count: int) -> Callable[[Data], Tensor]:
    """So many rounds of weighted sums over incoming edges."""

    def ask(data: Data) -> Tensor:
        x: Tensor = data.x
        for _ in range(count):
            x = x + torch.zeros_like(x).index_add(
                0, data.edge_index[1], x[data.edge_index[0]] * data.edge_weight[:, None]
            )
        return x

    return ask


@pytest.mark.parametrize("hops", [1, 2, 4])
@pytest.mark.parametrize("weights", [[0.5, 1.0, 2.0, 0.1], [0.0, 0.0, 3.0, 0.0], [1, 0, 0, 0]])
def test_a_path_gets_values_of_the_graphs_own_edges_that_let_a_change_through(hops: int, weights: list[float]) -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]])  # one of them a self-loop
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data = Data(x=x, edge_index=edges, edge_weight=torch.tensor(weights))
    found = measured_reach(rounds(hops), data, both_ways=False, expected=1, on_graph=True)
    assert (found.hops, found.everywhere) == (hops, False)


def test_on_the_graph_the_edges_that_stay_keep_their_own_values() -> None:
    """A model that refuses any other pair of an edge and a weight."""
    edges = torch.tensor([[0, 1, 1, 2, 3, 1], [1, 0, 2, 2, 4, 2]])
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    known = {(a, b, w) for (a, b), w in zip(edges.T.tolist(), weights.tolist(), strict=True)}
    seen = []

    def ask(data: Data) -> Tensor:
        if len(data.x) == 5:  # the graph, and not a path
            given = zip(data.edge_index.T.tolist(), data.edge_weight.tolist(), strict=True)
            seen.append({(a, b, w) for (a, b), w in given})
        return rounds(1)(data)

    data = Data(x=torch.randn(5, 3), edge_index=edges, edge_weight=weights)
    measured_reach(ask, data, both_ways=False, expected=1, on_graph=True)
    assert all(given <= known for given in seen)
    assert min(map(len, seen)) < len(known) == max(map(len, seen))  # an edge was taken out
