"""PyTorch Geometric's layers for several models at once: each model's own weights over its own graph.

A linear map and a sum over neighbours can be swapped. So the weights [features, hidden] are applied first, to features
that are sparse and constant, and the sum over neighbours then runs over the narrower result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from glasshouse.graph.models.layer_types import LAYER_TYPES
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.sparse import SparseMatrix

__all__ = ["Layer", "Weights", "batched_layer", "biased", "layer_obstacle", "normalised"]

Weights = Mapping[str, Tensor]  # a layer's parameters and buffers by name, each [K, ...]
Layer = Callable[[SparseMatrix | Tensor, Weights], Tensor]  # features, weights -> [K, m, out]


def layer_obstacle(layer: nn.Module) -> str | None:
    """Why this layer cannot be trained in one batch, or None.

    Example:
        >>> from torch_geometric.nn import GATConv, GCNConv
        >>> layer_obstacle(GCNConv(4, 2)) is None
        True
        >>> layer_obstacle(GATConv(4, 2, dropout=0.5))
        'the layer GATConv is used with options that cannot be trained in one batch'
    """
    name = type(layer).__name__
    trained = [kind for kind, one in LAYER_TYPES.items() if one.trains]
    if type(layer) not in trained:
        known = ", ".join(kind.__name__ for kind in trained)
        return f"the layer {name} cannot be trained in one batch ({known} can)"
    if not LAYER_TYPES[type(layer)].can_batch(layer) or layer.flow != "source_to_target":
        return f"the layer {name} is used with options that cannot be trained in one batch"
    return None


def batched_layer(layer: nn.Module, graph: BatchedGraph) -> Layer:
    """The layer for all models of a batch; what is constant in training is computed here, once.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> from glasshouse.graph.data.induced import InducedGraph
        >>> one = InducedGraph(torch.ones(2, 3), torch.tensor([[0], [1]]), torch.tensor([0, 1]))
        >>> graph = BatchedGraph.of([one, one])
        >>> step = batched_layer(GCNConv(3, 5), graph)
        >>> step(graph.x, {"lin.weight": torch.ones(2, 5, 3), "bias": torch.zeros(2, 5)}).shape
        torch.Size([2, 64, 5])
    """
    return cast("Layer", LAYER_TYPES[type(layer)].batched(layer, graph))


def biased(hidden: Tensor, bias: Tensor | None) -> Tensor:
    """Hidden values [K, m, c] plus each model's own bias [K, c], if there is one.

    Example:
        >>> biased(torch.zeros(1, 2, 1), torch.ones(1, 1)).tolist()
        [[[1.0], [1.0]]]
    """
    return hidden if bias is None else hidden + bias[:, None]


def normalised(graph: BatchedGraph, *, improved: bool = False, loops: bool) -> SparseMatrix:
    """Â of all graphs, [K m, K m]: the adjacency matrices with symmetric normalisation, with self-loops or without."""
    edges, weight = gcn_norm(graph.edge_index, None, graph.nodes, improved, loops, dtype=torch.float32)
    return SparseMatrix.of_edges(edges, weight, nodes=graph.nodes)
