"""Made-up molecules, and classifiers of graphs as users write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.nn import GCNConv, GINConv, GINEConv, global_add_pool, global_mean_pool

FEATURES, BONDS = 5, 3


def molecules(count: int, *, seed: int = 0, bonds: bool = False) -> list[Data]:
    """Rings of 6 to 12 atoms of five kinds with a few more bonds; two classes, of which one has more bonds."""
    source = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        atoms, label = int(source.integers(6, 13)), int(source.integers(2))
        ring = np.stack([np.arange(atoms), (np.arange(atoms) + 1) % atoms])
        pairs = np.hstack([ring, source.integers(0, atoms, (2, 1 + 2 * label))])
        edges = torch.from_numpy(np.hstack([pairs, pairs[::-1]]))
        kinds = torch.from_numpy(source.integers(0, FEATURES, atoms))
        data = Data(x=nn.functional.one_hot(kinds, FEATURES).float(), edge_index=edges, y=torch.tensor([label]))
        if bonds:
            data.edge_attr = torch.from_numpy(source.normal(size=(edges.shape[1], BONDS)).astype(np.float32))
        found.append(data)
    return found


class Dataset(InMemoryDataset):  # type: ignore[misc]
    """As PyTorch Geometric's own data sets of molecules are: all graphs in one, with slices."""

    def __init__(self, graphs: list[Data]) -> None:
        super().__init__(None)
        self.data, self.slices = self.collate(graphs)


class PooledGCN(nn.Module):
    """Two convolutions, a mean over each graph's nodes, a linear layer."""

    def __init__(self, width: int = 16, classes: int = 2) -> None:
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, width), GCNConv(width, width)
        self.last = nn.Linear(width, classes)

    def pooled(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden = self.second(self.first(x, edge_index).relu(), edge_index).relu()
        pooled: Tensor = global_mean_pool(hidden, batch)
        return pooled

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        return self.last(self.pooled(x, edge_index, batch))


class NamedOtherwise(PooledGCN):
    """Features and edges are known by their places, the assignment to graphs by one of its names."""

    def forward(self, h: Tensor, adj: Tensor, batch_index: Tensor) -> Any:
        return super().forward(h, adj, batch_index)


class TakesData(nn.Module):
    """GIN with BatchNorm and dropout, as in PyTorch Geometric's example on TUDataset; gives log_softmax and more."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        mlp = nn.Sequential(nn.Linear(FEATURES, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width))
        self.layer, self.middle, self.last = GINConv(mlp), nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, data: Data) -> Any:
        hidden = self.middle(global_add_pool(self.layer(data.x, data.edge_index), data.batch)).relu()
        dropped = nn.functional.dropout(hidden, 0.5, training=self.training)
        return self.last(dropped).log_softmax(dim=1), hidden


class TakesBatch(PooledGCN):
    """The whole batch, called batch."""

    def forward(self, batch: Any, with_hidden: bool = False) -> Any:  # type: ignore[override]
        return super().forward(batch.x, batch.edge_index, batch.batch)


class TakesBonds(nn.Module):
    """Features of edges by their name, in a place of its own; a dict of logits."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GINEConv(nn.Linear(FEATURES, 16), edge_dim=BONDS)
        self.last = nn.Linear(16, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Any:
        hidden = global_mean_pool(self.layer(x, edge_index, edge_attr).relu(), batch)
        return {"hidden": hidden, "logits": self.last(hidden)}


class OneLogit(PooledGCN):
    """One logit per graph, [B]."""

    def __init__(self) -> None:
        super().__init__(classes=1)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        return super().forward(x, edge_index, batch).view(-1)


class Lazy(PooledGCN):
    """Its first layer finds the number of features by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GCNConv(-1, 16)
