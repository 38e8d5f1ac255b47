"""What a model on a graph is, and the networks by name, of any depth, on PyTorch Geometric's own layers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from glasshouse.core.registry import Registry
from glasshouse.graph.layers.layer_type import counted_layers


class Model(Protocol):
    """Anything that maps a graph to logits [n, classes]: module or black box.

    It is called with features [n, features] and edges [2, edges], and with values of these edges if it has parameters
    for them; or with one `Data` (`glasshouse.graph.models.calls`).
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Logits [n, classes]."""


def model_device(models: Sequence[Model]) -> torch.device | None:
    """Where the first model with parameters lives; None if all are black boxes."""
    for model in models:
        if isinstance(model, nn.Module):
            for parameter in model.parameters():
                return parameter.device
    return None


Network = Callable[[int, int, int, int], list[nn.Module]]  # features, hidden, classes, layers -> convolutions

NETWORKS: Registry[Network] = Registry("a network")


def register_network(name: str) -> Callable[[Network], Network]:
    """Function decorator: add a network under a name, for `build_gnn`, `GNNTrainer` and audit files.

    Any PyG layers called as ``layer(x, edge_index)`` work. Those without a layer type
    (`glasshouse.graph.layers.layer_type`) are trained one model at a time and toggled as black boxes.

    Example:
        >>> @register_network("double-gcn")
        ... def double_gcn(features, hidden, classes, layers):
        ...     return [GCNConv(a, b) for a, b in layer_widths(features, 2 * hidden, classes, layers)]
        >>> NETWORKS.find("double-gcn")(5, 8, 3, 2)
        [GCNConv(5, 16), GCNConv(16, 3)]
    """
    return functools.partial(NETWORKS.add, name)


def layer_widths(features: int, hidden: int, classes: int, layers: int) -> list[tuple[int, int]]:
    """Inputs and outputs of each layer.

    Example:
        >>> layer_widths(5, 8, 3, 3)
        [(5, 8), (8, 8), (8, 3)]
    """
    return list(itertools.pairwise([features, *[hidden] * (layers - 1), classes]))


@register_network("gcn")
def _gcn(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    return [GCNConv(a, b) for a, b in layer_widths(features, hidden, classes, layers)]


@register_network("sage")
def _sage_max(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    return [SAGEConv(a, b, aggr="max") for a, b in layer_widths(features, hidden, classes, layers)]


@register_network("sage-mean")
def _sage_mean(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    return [SAGEConv(a, b, aggr="mean") for a, b in layer_widths(features, hidden, classes, layers)]


@register_network("gat")
def _gat(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    """Four heads side by side in hidden layers (hidden // 4 each), two averaged in the last, as the paper uses."""
    *inner, last = layer_widths(features, hidden, classes, layers)
    return [
        *[GATConv(a, b // 4, heads=4) for a, b in inner],
        GATConv(last[0], last[1], heads=2, concat=False),
    ]


@register_network("gin")
def _gin(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    return [
        GINConv(nn.Sequential(nn.Linear(a, hidden), nn.ReLU(), nn.Linear(hidden, b)))
        for a, b in layer_widths(features, hidden, classes, layers)
    ]


@register_network("sgc")
def _sgc(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    """One linear map of L-hop averages; ``hidden`` has no meaning for it."""
    return [SGConv(features, classes, K=layers)]


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
        glasshouse.InputError: "gatt" is not a network. Did you mean "gat"? Known: gcn, sage, ...
    """
    return GNN(NETWORKS.find(architecture)(features, hidden, classes, layers), dropout=dropout)
