"""Graph neural networks of any depth, on PyTorch Geometric's own layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glasshouse.graph.models.networks import NETWORKS
from glasshouse.graph.programs.reach import counted_layers

__all__ = ["GNN", "build_gnn"]


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
        """L, how far a node's features travel; a layer in which no message passing is found counts as one step."""
        return sum(max(1, counted_layers(layer)) for layer in self.convolutions)


def build_gnn(
    architecture: str, *, features: int, hidden: int, classes: int, layers: int = 2, dropout: float = 0.0
) -> GNN:
    """A fresh GNN of a registered network, such as ``"gcn"``, ``"sage"`` or ``"gat"``.

    Example:
        >>> build_gnn("gat", features=5, hidden=8, classes=3, layers=3).hops
        3
        >>> build_gnn("gatt", features=5, hidden=8, classes=3)
        Traceback (most recent call last):
        glasshouse.errors.InputError: "gatt" is not a network. Did you mean "gat"? Known: gcn, sage, ...
    """
    return GNN(NETWORKS.find(architecture)(features, hidden, classes, layers), dropout=dropout)
