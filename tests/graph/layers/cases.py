"""Every layer type with its options, as two layers of a user's module, and small graphs with every difficulty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    MLP,
    ARMAConv,
    ChebConv,
    ClusterGCNConv,
    FAConv,
    FiLMConv,
    GATConv,
    GATv2Conv,
    GCN2Conv,
    GCNConv,
    GENConv,
    GINConv,
    GINEConv,
    GraphConv,
    LEConv,
    LGConv,
    MFConv,
    ResGatedGraphConv,
    RGCNConv,
    SAGEConv,
    SGConv,
    SimpleConv,
    SSGConv,
    SuperGATConv,
    TAGConv,
    TransformerConv,
)

__all__ = ["CASES", "CLASSES", "FEATURES", "HIDDEN", "TwoLayers", "made_models", "messy_graph"]

FEATURES, HIDDEN, CLASSES, EDGE_FEATURES = 4, 5, 3, 2


class TwoLayers(nn.Module):
    """Two layers of one kind, which get a weight or features of edges, or what a linear map makes of features."""

    def __init__(self, make: Callable[[int, int], Any], values: str = "") -> None:
        super().__init__()
        self.first, self.last, self.values = make(FEATURES, HIDDEN), make(HIDDEN, CLASSES), values
        self.first_too = isinstance(self.first, GCN2Conv | FAConv)  # they get the first values beside their own
        self.same_width = self.first_too or isinstance(self.first, APPNP | LGConv | SimpleConv)
        if self.same_width:
            self.into = nn.Linear(FEATURES, CLASSES)
        if values == "encoded":
            self.encode = nn.Linear(EDGE_FEATURES, FEATURES)
            self.encode_last = nn.Linear(EDGE_FEATURES, HIDDEN)
        if values == "gated":
            self.gate = nn.Linear(EDGE_FEATURES, 1)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, edge_attr: Tensor | None = None
    ) -> Tensor:
        first: tuple[Any, ...] = {"weight": (edge_weight,), "features": (edge_attr,)}.get(self.values, ())
        last = first
        if self.values == "encoded":
            first, last = (self.encode(edge_attr),), (self.encode_last(edge_attr),)
        if self.values == "gated":
            first = last = (self.gate(edge_attr).sigmoid().squeeze(-1),)
        if self.values == "listed kinds":
            first = last = (edge_attr,)
        if self.values == "kinds" and edge_attr is not None:
            first = last = ((edge_attr.select(1, 0) > 0).long(),)
        x = self.into(x) if self.same_width else x
        if self.first_too:
            start = x
            x = torch.tanh(self.first(x, start, edge_index, *first))
            return self.last(x, start, edge_index, *last)  # type: ignore[no-any-return]
        return self.last(torch.tanh(self.first(x, edge_index, *first)), edge_index, *last)  # type: ignore[no-any-return]


def _perceptron(width: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, out))


def _attention(kind: type, **options: Any) -> Callable[[int, int], Any]:
    return lambda a, b: kind(a, b, heads=2, concat=False, **options)


CASES: dict[str, tuple[Callable[[int, int], Any], str]] = {
    "GCNConv": (GCNConv, ""),
    "GCNConv improved": (lambda a, b: GCNConv(a, b, improved=True), ""),
    "GCNConv without loops": (lambda a, b: GCNConv(a, b, add_self_loops=False), ""),
    "GCNConv without normalisation": (lambda a, b: GCNConv(a, b, normalize=False, bias=False), ""),
    "GCNConv weights": (GCNConv, "weight"),
    "GCNConv weights improved": (lambda a, b: GCNConv(a, b, improved=True), "weight"),
    "GCNConv weights without loops": (lambda a, b: GCNConv(a, b, add_self_loops=False), "weight"),
    "GCNConv weights without normalisation": (lambda a, b: GCNConv(a, b, normalize=False), "weight"),
    "GCNConv gated": (GCNConv, "gated"),
    "SAGEConv mean": (SAGEConv, ""),
    "SAGEConv max": (lambda a, b: SAGEConv(a, b, aggr="max"), ""),
    "SAGEConv add": (lambda a, b: SAGEConv(a, b, aggr="add", root_weight=False), ""),
    "SAGEConv normalize": (lambda a, b: SAGEConv(a, b, aggr="sum", normalize=True, bias=False), ""),
    "SAGEConv project": (lambda a, b: SAGEConv(a, b, project=True), ""),
    "SAGEConv project max": (lambda a, b: SAGEConv(a, b, project=True, aggr="max", normalize=True), ""),
    "SAGEConv project without root": (lambda a, b: SAGEConv(a, b, project=True, root_weight=False), ""),
    "SAGEConv std": (lambda a, b: SAGEConv(a, b, aggr="std"), ""),
    "GraphConv": (GraphConv, ""),
    "GraphConv mean": (lambda a, b: GraphConv(a, b, aggr="mean"), ""),
    "GraphConv max": (lambda a, b: GraphConv(a, b, aggr="max", bias=False), ""),
    "GraphConv weights": (GraphConv, "weight"),
    "GraphConv weights mean": (lambda a, b: GraphConv(a, b, aggr="mean"), "weight"),
    "GraphConv weights max": (lambda a, b: GraphConv(a, b, aggr="max"), "weight"),
    "GraphConv gated": (GraphConv, "gated"),
    "GINConv": (lambda a, b: GINConv(_perceptron(a, b), train_eps=True), ""),
    "GINConv MLP": (lambda a, b: GINConv(MLP([a, 6, b], norm="batch_norm"), eps=0.3), ""),
    "GINConv activation first": (lambda a, b: GINConv(nn.Sequential(nn.Tanh(), nn.Linear(a, b))), ""),
    "GINConv linear": (lambda a, b: GINConv(nn.Linear(a, b)), ""),
    "GINEConv": (lambda a, b: GINEConv(_perceptron(a, b), train_eps=True, edge_dim=EDGE_FEATURES), "features"),
    "GINEConv encoded": (lambda a, b: GINEConv(nn.Linear(a, b), eps=0.5), "encoded"),
    "SGConv": (lambda a, b: SGConv(a, b, K=2), ""),
    "SGConv weights": (lambda a, b: SGConv(a, b, K=2, add_self_loops=False), "weight"),
    "TAGConv": (lambda a, b: TAGConv(a, b, K=2), ""),
    "TAGConv weights": (lambda a, b: TAGConv(a, b, K=2, bias=False), "weight"),
    "TAGConv without normalisation": (lambda a, b: TAGConv(a, b, K=2, normalize=False), ""),
    "APPNP": (lambda a, b: APPNP(K=2, alpha=0.2), ""),
    "APPNP weights": (lambda a, b: APPNP(K=2, alpha=0.2, add_self_loops=False), "weight"),
    "SSGConv": (lambda a, b: SSGConv(a, b, alpha=0.1, K=2), "weight"),
    "SimpleConv mean": (lambda a, b: SimpleConv(aggr="mean"), ""),
    "SimpleConv weights": (lambda a, b: SimpleConv(aggr="mean"), "weight"),
    "SimpleConv root": (lambda a, b: SimpleConv(combine_root="sum"), ""),
    "LGConv": (lambda a, b: LGConv(), ""),
    "LGConv weights": (lambda a, b: LGConv(normalize=False), "weight"),
    "ChebConv": (lambda a, b: ChebConv(a, b, K=3), ""),
    "ChebConv one step": (lambda a, b: ChebConv(a, b, K=2, bias=False), ""),
    "ChebConv weights": (lambda a, b: ChebConv(a, b, K=2), "weight"),
    "GATConv": (_attention(GATConv), ""),
    "GATConv without loops": (_attention(GATConv, add_self_loops=False), ""),
    "GATConv features": (_attention(GATConv, edge_dim=EDGE_FEATURES), "features"),
    "GATConv features filled": (_attention(GATConv, edge_dim=EDGE_FEATURES, fill_value=0.7, residual=True), "features"),
    "GATConv largest features": (_attention(GATConv, edge_dim=EDGE_FEATURES, fill_value="max"), "features"),
    "GATConv weight as feature": (_attention(GATConv, edge_dim=1, add_self_loops=False), "weight"),
    "GATv2Conv": (_attention(GATv2Conv), ""),
    "GATv2Conv shared": (_attention(GATv2Conv, share_weights=True, residual=True), ""),
    "GATv2Conv without loops": (_attention(GATv2Conv, add_self_loops=False, bias=False), ""),
    "GATv2Conv features": (_attention(GATv2Conv, edge_dim=EDGE_FEATURES), "features"),
    "GATv2Conv features without loops": (
        _attention(GATv2Conv, edge_dim=EDGE_FEATURES, add_self_loops=False),
        "features",
    ),
    "TransformerConv": (_attention(TransformerConv), ""),
    "TransformerConv beta": (_attention(TransformerConv, beta=True), ""),
    "TransformerConv without root": (_attention(TransformerConv, root_weight=False), ""),
    "GCN2Conv": (lambda a, b: GCN2Conv(CLASSES, alpha=0.2, theta=0.5, layer=1), ""),
    "GCN2Conv weights": (lambda a, b: GCN2Conv(CLASSES, alpha=0.3, shared_weights=False), "weight"),
    "ARMAConv": (lambda a, b: ARMAConv(a, b, num_stacks=2, num_layers=2), ""),
    "ARMAConv weights": (
        lambda a, b: ARMAConv(a, b, num_layers=2, shared_weights=True, act=None, bias=False),
        "weight",
    ),
    "ClusterGCNConv": (lambda a, b: ClusterGCNConv(a, b, diag_lambda=0.3), ""),
    "LEConv": (LEConv, ""),
    "LEConv weights": (lambda a, b: LEConv(a, b, bias=False), "weight"),
    "MFConv": (lambda a, b: MFConv(a, b, max_degree=3), ""),
    "RGCNConv": (lambda a, b: RGCNConv(a, b, num_relations=2), "kinds"),
    "RGCNConv add": (lambda a, b: RGCNConv(a, b, num_relations=2, aggr="add", root_weight=False), "kinds"),
    "RGCNConv bases": (lambda a, b: RGCNConv(a, b, num_relations=2, num_bases=1), "kinds"),
    "FAConv": (lambda a, b: FAConv(CLASSES, eps=0.2), ""),
    "FAConv without loops": (lambda a, b: FAConv(CLASSES, add_self_loops=False), ""),
    "ResGatedGraphConv": (ResGatedGraphConv, ""),
    "ResGatedGraphConv without root": (lambda a, b: ResGatedGraphConv(a, b, root_weight=False, bias=False), ""),
    "FiLMConv": (FiLMConv, ""),
    "FiLMConv add": (lambda a, b: FiLMConv(a, b, aggr="add", act=nn.Tanh()), ""),
    "SuperGATConv": (_attention(SuperGATConv), ""),
    "SuperGATConv products": (_attention(SuperGATConv, attention_type="SD", add_self_loops=False), ""),
    "GENConv": (lambda a, b: GENConv(a, b, learn_t=True), ""),
    "GENConv same width": (lambda a, b: GENConv(a, a, t=2.0) if a == FEATURES else GENConv(FEATURES, b), ""),
    "GENConv mean": (lambda a, b: GENConv(a, b, aggr="mean", norm="layer"), ""),
    "GENConv powermean": (lambda a, b: GENConv(a, b, aggr="powermean"), ""),
    "TransformerConv features": (_attention(TransformerConv, edge_dim=EDGE_FEATURES, beta=True), "features"),
}
"""By name: the layer from its widths, and what edges give it."""


def messy_graph(seed: int, *, both_ways: bool, dtype: torch.dtype = torch.float64) -> Data:
    """12 nodes, with self-loops (one of them twice), a repeated edge, a hub and a node without edges.

    If edges do not all go both ways, those of the hub still do.
    """
    source = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, 11, (2, 14), generator=source)
    hub = torch.stack([torch.zeros(4, dtype=torch.long), torch.arange(1, 5)])
    edges = torch.cat([pairs, hub, pairs[:, :2], torch.tensor([[3, 3, 6], [3, 3, 6]])], dim=1)
    edges = torch.cat([edges, edges.flip(0) if both_ways else hub.flip(0)], dim=1)
    count = edges.shape[1]
    return Data(
        x=torch.randn(12, FEATURES, generator=source, dtype=dtype),
        edge_index=edges,
        edge_weight=torch.rand(count, generator=source, dtype=dtype) + 0.1,
        edge_attr=torch.randn(count, EDGE_FEATURES, generator=source, dtype=dtype),
        y=torch.randint(0, CLASSES, (12,), generator=source),
    )


def made_models(make: Callable[[], nn.Module], *, dtype: torch.dtype = torch.float64, count: int = 2) -> list[Any]:
    """Models in evaluation mode whose every parameter and statistic is random."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        models = [make() for _ in range(count)]
        for model in models:
            for name, value in model.state_dict().items():
                if value.is_floating_point():
                    noise = torch.rand_like(value) + 0.5 if name.endswith("running_var") else torch.randn_like(value)
                    value.copy_(noise * (1.0 if name.endswith("running_var") else 0.5))
    return [model.to(dtype).eval() for model in models]
