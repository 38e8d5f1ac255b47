"""Graph neural networks of any depth, on PyTorch Geometric's own layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

__all__ = ["ARCHITECTURES", "GNN", "build_gnn"]

Builder = Callable[[int, int, int, int], list[nn.Module]]  # features, hidden, classes, layers -> convolutions


class GNN(nn.Module):
    """A stack of graph convolutions with ReLU and dropout between them; the last one gives the logits.

    Args:
        convolutions: PyG layers called as ``layer(x, edge_index)``, applied in order.
        dropout: share of hidden values dropped while training, after each ReLU.

    Example:
        >>> model = build_gnn("gcn", features=5, hidden=8, classes=3)
        >>> model(torch.zeros(4, 5), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([4, 3])
    """

    def __init__(self, convolutions: list[nn.Module], *, dropout: float = 0.0) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits [n, classes] of all nodes."""
        for convolution in self.convolutions[:-1]:
            x = torch.relu(convolution(x, edge_index))
            x = nn.functional.dropout(x, self.dropout, self.training)
        return self.convolutions[-1](x, edge_index)  # type: ignore[no-any-return]

    @property
    def hops(self) -> int:
        """L, how far a node's features travel."""
        return sum(layer.K if isinstance(layer, SGConv) else 1 for layer in self.convolutions)


def _widths(features: int, hidden: int, classes: int, layers: int) -> list[tuple[int, int]]:
    widths = [features, *[hidden] * (layers - 1), classes]
    return list(itertools.pairwise(widths))


def _gcn(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    return [GCNConv(a, b) for a, b in _widths(features, hidden, classes, layers)]


def _sage(aggregation: str) -> Builder:
    def build(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
        return [SAGEConv(a, b, aggr=aggregation) for a, b in _widths(features, hidden, classes, layers)]

    return build


def _gat(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    """Four heads side by side in hidden layers (hidden // 4 each), two averaged in the last, as the paper uses."""
    *inner, last = _widths(features, hidden, classes, layers)
    return [
        *[GATConv(a, b // 4, heads=4) for a, b in inner],
        GATConv(last[0], last[1], heads=2, concat=False),
    ]


def _gin(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    return [
        GINConv(nn.Sequential(nn.Linear(a, hidden), nn.ReLU(), nn.Linear(hidden, b)))
        for a, b in _widths(features, hidden, classes, layers)
    ]


def _sgc(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    """One linear map of L-hop averages; ``hidden`` has no meaning for it."""
    return [SGConv(features, classes, K=layers)]


ARCHITECTURES: dict[str, Builder] = {
    "gcn": _gcn,
    "sage": _sage("max"),
    "sage-mean": _sage("mean"),
    "gat": _gat,
    "gin": _gin,
    "sgc": _sgc,
}


def build_gnn(
    architecture: str, *, features: int, hidden: int, classes: int, layers: int = 2, dropout: float = 0.0
) -> GNN:
    """A fresh GNN of a named architecture: one of ``ARCHITECTURES``.

    Example:
        >>> build_gnn("gat", features=5, hidden=8, classes=3, layers=3).hops
        3
    """
    return GNN(ARCHITECTURES[architecture](features, hidden, classes, layers), dropout=dropout)
