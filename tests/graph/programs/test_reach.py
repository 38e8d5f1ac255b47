from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCN, ChebConv, SGConv, TAGConv

from glasshouse.core.errors import InputError
from glasshouse.graph.layers.layer_type import counted_layers
from glasshouse.graph.programs.reach import reach_on_graph, reach_on_path, rounding

X = torch.randn(12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PATH = torch.stack([torch.arange(11), torch.arange(1, 12)])
EDGES = torch.cat([PATH, PATH.flip(0)], dim=1)


def steps(hops: int, x: Tensor, edges: Tensor) -> Tensor:
    """Sums over neighbours, so many times."""
    for _ in range(hops):
        x = x + torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])
    return x


@pytest.mark.parametrize("hops", [0, 1, 3, 7])
def test_the_reach_is_the_number_of_steps_whatever_was_expected(hops: int) -> None:
    for expected in (0, 2, 9):
        found = reach_on_path(lambda x, edges: steps(hops, x, edges), X, both_ways=True, expected=expected)
        assert (found.hops, found.everywhere) == (hops, False)


def test_a_graph_shows_at_most_what_it_has_and_never_less_than_was_believed() -> None:
    assert reach_on_graph(lambda x, edges: steps(2, x, edges), X, EDGES, hops=1).hops == 2
    assert reach_on_graph(lambda x, edges: steps(1, x, edges), X, EDGES, hops=4).hops == 4


def test_a_model_that_looks_at_all_nodes_is_seen_where_no_path_leads() -> None:
    assert reach_on_path(lambda x, edges: x - x.mean(0), X, both_ways=True, expected=1).everywhere
    two_parts = EDGES[:, (EDGES < 5).all(0)]
    assert reach_on_graph(lambda x, edges: x - x.mean(0), X, two_parts, hops=1).everywhere


def test_degrees_alone_are_the_first_step() -> None:
    def degrees(x: Tensor, edges: Tensor) -> Tensor:
        return torch.bincount(edges[1], minlength=len(x)).to(x).unsqueeze(1).repeat(1, 2)

    assert reach_on_path(degrees, X, both_ways=True, expected=0).hops == 1


def test_models_that_cannot_be_asked_about_parts_are_refused() -> None:
    with pytest.raises(InputError, match="order of the nodes"):
        reach_on_path(lambda x, edges: x + torch.arange(len(x)).unsqueeze(1), X, both_ways=True, expected=1)
    with pytest.raises(InputError, match="dropout is on"):
        rounding(lambda x, edges: torch.rand(len(x), 2), X, EDGES, torch.ones(12, 2))


def test_layers_of_several_steps_count_as_many() -> None:
    assert counted_layers(torch.nn.Sequential(SGConv(2, 2, K=3), TAGConv(2, 2, K=4), torch.nn.Linear(2, 2))) == 7
    assert counted_layers(ChebConv(2, 2, K=3)) == 2


@pytest.mark.parametrize("seed", [299, 430, 583])
def test_a_model_with_idle_relus_is_not_taken_for_a_cached_one(seed: int) -> None:
    """With these weights, removing one edge changes nothing near it; such a model once failed the CI."""
    torch.manual_seed(seed)
    model = GCN(3, 4, num_layers=3, out_channels=2).eval()
    rows = torch.randn(5, 3)
    assert reach_on_path(lambda x, edges: model(x, edges).detach(), rows, both_ways=True, expected=3).hops <= 3
