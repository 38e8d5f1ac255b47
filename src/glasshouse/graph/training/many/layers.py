"""PyTorch Geometric's layers for several models at once: each model's own weights over its own graph.

A linear map and a sum over neighbours can be swapped. So the weights [features, hidden] are applied first, to features
that are sparse and constant, and the sum over neighbours then runs over the narrower result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, remove_self_loops, scatter, softmax

from glasshouse.graph.models.layer_type import LAYER_TYPES
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix

Weights = Mapping[str, Tensor]  # a layer's parameters and buffers by name, each [K, ...]
Layer = Callable[[SparseMatrix | Tensor, Weights], Tensor]  # features, weights -> [K, m, out]


def layer_obstacle(layer: nn.Module) -> str | None:
    """Why this layer cannot be trained in one batch, or None.

    Example:
        >>> from torch_geometric.nn import GATConv, GCNConv
        >>> layer_obstacle(GCNConv(4, 2)) is None
        True
        >>> layer_obstacle(GATConv(4, 2, aggr="max"))
        'the layer GATConv is used with options that cannot be trained in one batch'
    """
    name = type(layer).__name__
    if type(layer) not in LAYER_TYPES or not LAYER_TYPES[type(layer)].trains:
        return f"the layer {name} cannot be trained in one batch"
    if not LAYER_TYPES[type(layer)].can_batch(layer) or layer.flow != "source_to_target":
        return f"the layer {name} is used with options that cannot be trained in one batch"
    return None


def batched_layer(layer: nn.Module, graph: BatchedGraph, **edge_values: Tensor) -> Layer:
    """The layer for all models of a batch; what is constant in training is computed here, once.

    Args:
        layer: of one model.
        graph: the models' graphs.
        **edge_values: arguments with one number per edge, [E].

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> from glasshouse.graph.data.subgraph import InducedGraph
        >>> one = InducedGraph(torch.ones(2, 3), torch.tensor([[0], [1]]), torch.tensor([0, 1]))
        >>> graph = BatchedGraph.of([one, one])
        >>> step = batched_layer(GCNConv(3, 5), graph)
        >>> step(graph.x, {"lin.weight": torch.ones(2, 5, 3), "bias": torch.zeros(2, 5)}).shape
        torch.Size([2, 64, 5])
    """
    return cast("Layer", LAYER_TYPES[type(layer)].batched(layer, graph, **edge_values))


def biased(hidden: Tensor, bias: Tensor | None) -> Tensor:
    """Hidden values [K, m, c] plus each model's own bias [K, c], if there is one.

    Example:
        >>> biased(torch.zeros(1, 2, 1), torch.ones(1, 1)).tolist()
        [[[1.0], [1.0]]]
    """
    return hidden if bias is None else hidden + bias[:, None]


def weights_of(weights: Weights, path: str) -> Weights:
    """The weights of one part of a traced model, by their names within that part.

    Example:
        >>> list(weights_of({"convs.0.bias": torch.ones(2, 1), "convs.1.bias": torch.ones(2, 1)}, "model.convs.1"))
        ['bias']
    """
    prefix = f"{path}.".removeprefix("model.")
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}


def normalised(
    graph: BatchedGraph, weight: Tensor | None = None, *, improved: bool = False, loops: bool
) -> SparseMatrix:
    """Â of all graphs, [K m, K m]: the adjacency matrices with symmetric normalisation, with self-loops or without.

    Args:
        graph: the models' graphs.
        weight: [E] one number per edge; 1 by default.
        improved: whether self-loops count twice.
        loops: whether there are self-loops.
    """

    def make() -> SparseMatrix:
        edges, values = gcn_norm(graph.edge_index, weight, graph.nodes, improved, loops, dtype=torch.float32)
        return SparseMatrix.of_edges(edges, values, nodes=graph.nodes)

    return graph.kept(("normalised", weight is None or id(weight), improved, loops), make)


def summed(graph: BatchedGraph, weight: Tensor | None = None, *, mean: bool = False) -> SparseMatrix:
    """The adjacency matrices [K m, K m], which sum over neighbours; with ``mean``, divided by their number.

    Args:
        graph: the models' graphs.
        weight: [E] one number per edge; 1 by default.
        mean: whether rows are divided by the number of neighbours.
    """

    def make() -> SparseMatrix:
        target = graph.edge_index[1]
        share = 1 / torch.bincount(target, minlength=graph.nodes).clamp(min=1).float()
        values = torch.ones_like(target, dtype=torch.float32) if weight is None else weight
        return SparseMatrix.of_edges(graph.edge_index, values * share[target] if mean else values, nodes=graph.nodes)

    return graph.kept(("summed", weight is None or id(weight), mean), make)


def largest(hidden: Tensor, graph: BatchedGraph, weight: Tensor | None = None) -> Tensor:
    """The largest of the neighbours' values, [K, m, c]; 0 without neighbours. Ties share the gradient, as in PyG.

    Args:
        hidden: [K, m, c].
        graph: the models' graphs.
        weight: [E] numbers that the values are multiplied with; 1 by default.
    """
    source, target = graph.edge_index
    sent = hidden.flatten(0, 1)[source]
    if weight is not None:
        sent = weight[:, None] * sent
    found: Tensor = scatter(sent, target, dim=0, dim_size=graph.nodes, reduce="max")
    return graph.by_graph(found)


class AttentionEdges(NamedTuple):
    """The edges of all graphs, model by model, so that each model draws its own dropout of them."""

    source: Tensor  # [E]
    target: Tensor  # [E]
    counts: list[int]  # [K] edges per model


def attention_edges(graph: BatchedGraph, *, loops: bool) -> AttentionEdges:
    """The edges that carry attention; with ``loops``, one self-loop per node in place of those of the graph.

    Example:
        >>> from glasshouse.graph.data.subgraph import InducedGraph
        >>> one = InducedGraph(torch.eye(2), torch.tensor([[0, 1], [1, 1]]), torch.tensor([0, 1]))
        >>> attention_edges(BatchedGraph.of([one, one]), loops=True).counts
        [65, 65]
    """

    def make() -> AttentionEdges:
        edges = graph.edge_index
        if loops:
            edges = add_self_loops(remove_self_loops(edges)[0], num_nodes=graph.nodes)[0]
            edges = edges[:, (edges[0] // graph.size).argsort(stable=True)]
        owner = edges[0] // graph.size
        return AttentionEdges(edges[0], edges[1], torch.bincount(owner, minlength=graph.count).tolist())

    return graph.kept(("attention", loops), make)


def attended(graph: BatchedGraph, edges: AttentionEdges, fit: Tensor, values: Tensor, *, dropout: float) -> Tensor:
    """Values of the senders, weighted by the softmax of ``fit`` over each receiver's edges: [K, m, heads, c].

    Args:
        graph: the models' graphs.
        edges: their edges.
        fit: [E, heads] how much a receiver wants what a sender has.
        values: [K, m, heads, c] of the senders.
        dropout: share of the weights that is dropped.
    """
    share = softmax(fit, edges.target, num_nodes=graph.nodes)
    if dropout:
        share = graph.drop_edges(share, edges.counts, dropout)
    flat = values.flatten(0, 1)  # [K m, heads, c]
    return graph.by_graph(torch.zeros_like(flat).index_add(0, edges.target, share[:, :, None] * flat[edges.source]))
