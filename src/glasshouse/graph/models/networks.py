"""The networks by name: each is one function that makes the convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from glasshouse.registry import Registry

__all__ = ["NETWORKS", "Network", "layer_widths", "register_network"]

Network = Callable[[int, int, int, int], list[nn.Module]]  # features, hidden, classes, layers -> convolutions

NETWORKS: Registry[Network] = Registry("a network")


def register_network(name: str) -> Callable[[Network], Network]:
    """Function decorator: add a network under a name, for `build_gnn`, `GNNTrainer` and audit files.

    Any PyG layers called as ``layer(x, edge_index)`` work. Those without a layer type
    (`glasshouse.graph.models.layer_types`) are trained one model at a time and toggled as black boxes.

    Example:
        >>> @register_network("double-gcn")
        ... def double_gcn(features, hidden, classes, layers):
        ...     return [GCNConv(a, b) for a, b in layer_widths(features, 2 * hidden, classes, layers)]
        >>> NETWORKS.find("double-gcn")(5, 8, 3, 2)
        [GCNConv(5, 16), GCNConv(16, 3)]
    """

    def add(network: Network) -> Network:
        NETWORKS.add(name, network)
        return network

    return add


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
