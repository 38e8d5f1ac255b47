"""Layers that look at more than their senders: found, and then asked exactly or about whole graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, DirGNNConv, GATConv, GCN2Conv, GCNConv, MessagePassing, SAGEConv, SGConv
from torch_geometric.utils import degree

from glasshouse.graph import toggle_losses
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.programs.reach import Reach, dependence_of
from tests.graph.layers.cases import CLASSES, FEATURES, HIDDEN, made_models, messy_graph
from tests.graph.test_zoo import rule_as_written


class ByOutDegree(MessagePassing):  # type: ignore[misc]
    """Each sender shares its value among those that it sends to."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        share = 1 / degree(edge_index[0], len(x), x.dtype).clamp(min=1)
        return self.lin(x) + self.propagate(edge_index, x=self.lin(x) * share.unsqueeze(1))  # type: ignore[no-any-return]


class Two(nn.Module):
    """Two layers; as a black box it also has a step that cannot be traced."""

    def __init__(self, kind: Any, *, opaque: bool = False, **options: Any) -> None:
        super().__init__()
        self.first, self.last = kind(FEATURES, HIDDEN, **options), kind(HIDDEN, CLASSES, **options)
        self.opaque = opaque

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index).tanh()
        if self.opaque and bool(x.isnan().any()):
            raise ValueError
        return self.last(x, edge_index)  # type: ignore[no-any-return]


class Initial(nn.Module):
    """Layers that read two values per node, once as a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.pair = nn.Linear(FEATURES, HIDDEN), SAGEConv((HIDDEN, HIDDEN), HIDDEN)
        self.deep, self.out = GCN2Conv(HIDDEN, alpha=0.3), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        start = self.into(x)
        x = self.pair((start, start.relu()), edge_index).tanh()
        return self.out(self.deep(x, start, edge_index))  # type: ignore[no-any-return]


def plain(data: Any) -> Any:
    del data.edge_weight, data.edge_attr
    return data


def layer_of(kind: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    layer = kind(FEATURES, HIDDEN, **options).double()
    return lambda x, edges: layer(x, edges).detach()


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (layer_of(GATConv), Reach(senders=False, leaving=False, everywhere=False)),
        (layer_of(GCNConv), Reach(senders=True, leaving=False, everywhere=False)),
        (layer_of(ByOutDegree), Reach(senders=False, leaving=True, everywhere=False)),
        (layer_of(GCNConv, flow="target_to_source"), Reach(senders=False, leaving=True, everywhere=False)),
        (layer_of(ChebConv, K=2, normalization=None), Reach(senders=False, leaving=True, everywhere=True)),
        (lambda x, edges: x - x.mean(0), Reach(senders=False, leaving=False, everywhere=False)),
        (lambda x, edges: x * edges.shape[1], Reach(senders=True, leaving=True, everywhere=True)),
    ],
    ids=["GAT", "GCN", "out-degree", "against the edges", "largest degree", "mean", "number of edges"],
)
def test_what_a_layer_depends_on_is_found(layer: Any, wanted: Reach) -> None:
    torch.manual_seed(1)
    assert dependence_of(layer, torch.randn(20, FEATURES, dtype=torch.float64)) == wanted


@pytest.mark.parametrize("both_ways", [True, False], ids=["both ways", "one way"])
@pytest.mark.parametrize(
    ("make", "taken_apart"),
    [
        (lambda: Two(ByOutDegree), True),
        (lambda: Two(ByOutDegree, opaque=True), False),
        (lambda: Two(GCNConv, flow="target_to_source"), True),
        (lambda: Two(ChebConv, K=2), True),
        (lambda: Two(ChebConv, K=2, normalization="rw"), True),
    ],
    ids=["out-degree", "out-degree in a black box", "against the edges", "ChebConv", "ChebConv by rows"],
)
def test_layers_that_use_leaving_edges_equal_the_rule_as_written(make: Any, taken_apart: bool, both_ways: bool) -> None:
    data = plain(messy_graph(5, both_ways=both_ways))
    model = made_models(make, count=1)[0]
    masks = torch.rand(2, 12, generator=torch.Generator().manual_seed(2)) < 0.6
    nodes = torch.tensor([0, 3, 5, 8])
    found = toggle_losses([model], data, masks, nodes)
    for i, mask in enumerate(masks):
        for j, node in enumerate(nodes.tolist()):
            wanted = rule_as_written(model, data, mask, node, 2 if both_ways else None)
            assert float(found[0, i, j]) == pytest.approx(wanted, abs=1e-9)
    profile = profile_models([model], data)[0].profile
    assert profile.everywhere != both_ways
    assert (profile.program is not None) == (both_ways and taken_apart)


class Steps(SGConv):  # type: ignore[misc]
    """Several steps, without a type of its own: it is measured."""


class LargestOfSteps(MessagePassing):  # type: ignore[misc]
    """The largest of what senders share, three times."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__(aggr="max")
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x, share = self.lin(x), degree(edge_index[1], len(x), x.dtype).clamp(min=1).rsqrt().unsqueeze(1)
        for _ in range(3):
            x = self.propagate(edge_index, x=x * share)
        return x


def directed(width: int, out: int) -> DirGNNConv:
    """One convolution along the edges and one against them; neither adds self-loops."""
    return DirGNNConv(GCNConv(width, out))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_degrees_count_for_layers_of_several_steps_without_self_loops(steps: int) -> None:
    """Nothing comes from a node that nobody sends to, so such a layer may seem to depend on nothing."""
    layer = Steps(FEATURES, CLASSES, K=steps, add_self_loops=False)
    assert dependence_of(lambda x, edges: layer(x, edges).detach(), torch.randn(9, FEATURES)).senders


def test_a_layer_against_the_edges_depends_on_leaving_edges() -> None:
    layer = directed(FEATURES, CLASSES)
    assert dependence_of(lambda x, edges: layer(x, edges).detach(), torch.randn(9, FEATURES)).leaving


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda: Two(Steps, K=2, add_self_loops=False),
        lambda: Two(Steps, K=3, add_self_loops=False),
        lambda: Two(LargestOfSteps),
        lambda: Two(directed),
    ],
    ids=["two steps", "three steps", "the largest of three steps", "against the edges too"],
)
def test_layers_that_are_measured_equal_the_rule(make: Any, both_ways: bool) -> None:
    data = plain(messy_graph(7, both_ways=both_ways))
    models = made_models(make)
    masks = torch.rand(2, 12, generator=torch.Generator().manual_seed(4)) < 0.6
    found = toggle_losses(models, data, masks, torch.arange(12))
    wanted = toggle_losses(models, data, masks, torch.arange(12), engine="reference")
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_layers_that_read_several_values_per_node_equal_the_rule_as_written() -> None:
    data = plain(messy_graph(6, both_ways=False))
    models = made_models(Initial)
    masks = torch.rand(2, 12, generator=torch.Generator().manual_seed(3)) < 0.6
    nodes = torch.tensor([0, 3, 5])
    found = toggle_losses(models, data, masks, nodes, engine="layered")
    wanted = [
        [[rule_as_written(model, data, mask, node, 2) for node in nodes.tolist()] for mask in masks] for model in models
    ]
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64), rtol=1e-9, atol=1e-9)
