"""Modules that users write, with what a tracer may stumble over."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.nn import GCNConv, SAGEConv

__all__ = ["InPlaceTwice", "Looped", "Sized", "Two", "Weighted"]


class Two(nn.Module):
    """Two layers with what is usual between them."""

    def __init__(self, features: int = 5, hidden: int = 8, classes: int = 3, *, slope: float = 0.1) -> None:
        super().__init__()
        self.a, self.b, self.norm = GCNConv(features, hidden), GCNConv(hidden, classes), nn.BatchNorm1d(hidden)
        self.act = nn.LeakyReLU(slope, inplace=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.act(self.norm(self.a(x, edge_index)))
        x = F.dropout(x, 0.5, training=self.training)
        return F.log_softmax(self.b(x, edge_index), dim=-1)


class Sized(nn.Module):
    """Makes a column of ones by the number of rows, and slices columns."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = SAGEConv(5, 8), nn.Linear(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = torch.relu(self.conv(x, edge_index))
        ones = x.new_ones(x.size(0), 1)
        return self.head(torch.cat([h[:, 2:6], ones], dim=1))  # type: ignore[no-any-return]


class InPlaceTwice(nn.Module):
    """Changes a value in place and reads it again: a list of calls without that effect would be wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = GCNConv(5, 8), GCNConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.a(x, edge_index)
        h.relu_()
        return self.b(h, edge_index)  # type: ignore[no-any-return]


class Looped(nn.Module):
    """Its own layers, called in a loop over a ModuleList."""

    def __init__(self, layer: Any, layers: int = 2) -> None:
        super().__init__()
        widths = [5, *[8] * (layers - 1)]
        self.layers = nn.ModuleList(layer(width, 8) for width in widths)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.elu(layer(x, edge_index))
        return self.head(x)  # type: ignore[no-any-return]


class Weighted(nn.Module):
    """Edge weights for the first layer, none for the second."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = GCNConv(5, 8), GCNConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.b(self.a(x, edge_index, edge_weight).relu(), edge_index)  # type: ignore[no-any-return]
