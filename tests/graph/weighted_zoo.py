"""Modules as users write them for graphs whose edges have weights or features, each with its true reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GATConv, GCNConv, GINEConv, GraphConv, GraphNorm, GraphSAGE

__all__ = ["CLASSES", "FEATURES", "KINDS", "WEIGHTED_ZOO", "Animal"]

FEATURES, HIDDEN, CLASSES, EDGE_FEATURES, KINDS = 5, 8, 3, 4, 6


class Mine(GCNConv):  # type: ignore[misc]
    """The same layer by another name, which no table of layers knows."""


class WeightedGCN(nn.Module):
    """Two GCNConv with weights of edges."""

    def __init__(self, layer: type[GCNConv] = GCNConv) -> None:
        super().__init__()
        self.first, self.last = layer(FEATURES, HIDDEN), layer(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        x = self.first(x, edge_index, edge_weight).relu()
        return self.last(x, edge_index, edge_weight)  # type: ignore[no-any-return]


class Attending(nn.Module):
    """Two GATConv that look at features of edges, by another name of the parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GATConv(FEATURES, HIDDEN, heads=2, edge_dim=EDGE_FEATURES)
        self.last = GATConv(2 * HIDDEN, CLASSES, edge_dim=EDGE_FEATURES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_features: Tensor) -> Tensor:
        return self.last(self.first(x, edge_index, edge_features).relu(), edge_index, edge_features)  # type: ignore[no-any-return]


class Encoded(nn.Module):
    """GINEConv over kinds of edges, whole numbers that an embedding turns into features."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds, self.into = nn.Embedding(KINDS, HIDDEN), nn.Linear(FEATURES, HIDDEN)
        self.convs = nn.ModuleList(GINEConv(nn.Linear(HIDDEN, HIDDEN)) for _ in range(2))
        self.out = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, *, edge_attr: Tensor) -> Tensor:
        x, kinds = self.into(x), self.kinds(edge_attr)
        for conv in self.convs:
            x = conv(x, edge_index, kinds).relu()
        return self.out(x)  # type: ignore[no-any-return]


class OnData(nn.Module):
    """One Data, with weights and features of its edges."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = GraphConv(FEATURES, HIDDEN), GATConv(HIDDEN, CLASSES, edge_dim=EDGE_FEATURES)

    def forward(self, data: Data) -> Tensor:
        x = self.first(data.x, data.edge_index, data.edge_weight).relu()
        return self.last(x, data.edge_index, data.edge_attr)  # type: ignore[no-any-return]


class WholeGraph(nn.Module):
    """A norm over all nodes, with weights of edges: it is asked about whole graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = GCNConv(FEATURES, HIDDEN), GraphNorm(HIDDEN), GCNConv(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        x = self.norm(self.first(x, edge_index, edge_weight)).relu()
        return self.last(x, edge_index, edge_weight)  # type: ignore[no-any-return]


def _function() -> Callable[..., Tensor]:
    """A plain function: two rounds of weighted sums."""
    weight = torch.randn(FEATURES, CLASSES)

    def answer(x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        for _ in range(2):
            sent = x[edge_index[0]] * edge_weight.unsqueeze(1)
            x = x + 0.3 * torch.zeros_like(x).index_add(0, edge_index[1], sent)
        return x @ weight.to(x.dtype)

    return answer


@dataclass(frozen=True, kw_only=True)
class Animal:
    """A model, what the edges of its graph have, how it is called by hand, and its reach (None: the whole graph)."""

    make: Callable[[], Any]
    values: tuple[str, ...]
    call: Callable[[Any, Data], Tensor]
    hops: int | None = 2


def _weight(model: Any, data: Data) -> Tensor:
    return model(data.x, data.edge_index, data.edge_weight)  # type: ignore[no-any-return]


WEIGHTED_ZOO = {
    "two GCNConv with weights": Animal(make=WeightedGCN, values=("edge_weight",), call=_weight),
    "an empty subclass of GCNConv with weights": Animal(
        make=lambda: WeightedGCN(Mine), values=("edge_weight",), call=_weight
    ),
    "two GATConv with features": Animal(
        make=Attending, values=("edge_attr",), call=lambda m, d: m(d.x, d.edge_index, d.edge_attr)
    ),
    "GINEConv over kinds of edges": Animal(
        make=Encoded, values=("kinds",), call=lambda m, d: m(d.x, d.edge_index, edge_attr=d.edge_attr)
    ),
    "one Data": Animal(make=OnData, values=("edge_weight", "edge_attr"), call=lambda m, d: m(d)),
    "plain function": Animal(make=_function, values=("edge_weight", "edge_attr"), call=_weight),
    "GraphNorm": Animal(make=WholeGraph, values=("edge_weight",), call=_weight, hops=None),
    "PyG's GCN": Animal(make=lambda: GCN(FEATURES, HIDDEN, 2, CLASSES), values=("edge_weight",), call=_weight),
    "PyG's GAT": Animal(
        make=lambda: GAT(FEATURES, HIDDEN, 2, CLASSES, v2=True, edge_dim=EDGE_FEATURES),
        values=("edge_weight", "edge_attr"),
        call=lambda m, d: m(d.x, d.edge_index, edge_attr=d.edge_attr),
    ),
    "PyG's GraphSAGE, which takes no values": Animal(
        make=lambda: GraphSAGE(FEATURES, HIDDEN, 2, CLASSES),
        values=("edge_weight", "edge_attr"),
        call=lambda m, d: m(d.x, d.edge_index),
    ),
}
