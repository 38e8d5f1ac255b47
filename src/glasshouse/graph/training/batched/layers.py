"""PyTorch Geometric's layers for several models at once: each model's own weights over its own graph.

A linear map and a sum over neighbours may change places, so weights [features, hidden] meet the features first, where
these are sparse and constant, and neighbours pass on what is left: the narrower side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, remove_self_loops, scatter, softmax

from glasshouse.graph.training.batched.graphs import BatchedGraph, side_by_side
from glasshouse.graph.training.sparse import SparseMatrix

__all__ = ["Layer", "batched_layer", "layer_obstacle"]

Weights = Mapping[str, Tensor]  # a layer's parameters and buffers by name, each [K, ...]
Layer = Callable[[SparseMatrix | Tensor, Weights], Tensor]  # features, weights -> [K, m, out]


def layer_obstacle(layer: nn.Module) -> str | None:
    """Why this layer cannot be stacked, or None.

    Example:
        >>> layer_obstacle(GCNConv(4, 2)) is None
        True
        >>> layer_obstacle(GATConv(4, 2, dropout=0.5))
        'the layer GATConv is used with options that have no stacked form here'
    """
    name = type(layer).__name__
    if type(layer) not in _LAYERS:
        known = ", ".join(kind.__name__ for kind in _LAYERS)
        return f"the layer {name} has no stacked form here ({known} have)"
    plain, _ = _LAYERS[type(layer)]
    if not plain(layer) or layer.flow != "source_to_target":
        return f"the layer {name} is used with options that have no stacked form here"
    return None


def batched_layer(layer: nn.Module, graph: BatchedGraph) -> Layer:
    """The layer for all models of a stack; what is constant in training is computed here, once.

    Example:
        >>> from glasshouse.graph.data.induced import InducedGraph
        >>> one = InducedGraph(torch.ones(2, 3), torch.tensor([[0], [1]]), torch.tensor([0, 1]))
        >>> graph = BatchedGraph.of([one, one])
        >>> step = batched_layer(GCNConv(3, 5), graph)
        >>> step(graph.x, {"lin.weight": torch.ones(2, 5, 3), "bias": torch.zeros(2, 5)}).shape
        torch.Size([2, 64, 5])
    """
    _, prepare = _LAYERS[type(layer)]
    return prepare(layer, graph)


def _biased(hidden: Tensor, bias: Tensor | None) -> Tensor:
    return hidden if bias is None else hidden + bias[:, None]


def _normalised(graph: BatchedGraph, *, improved: bool, loops: bool) -> SparseMatrix:
    """Â of all graphs, [K m, K m]."""
    edges, weight = gcn_norm(graph.edge_index, None, graph.nodes, improved, loops, dtype=torch.float32)
    return SparseMatrix.of_edges(edges, weight, nodes=graph.nodes)


def _sums(graph: BatchedGraph) -> SparseMatrix:
    """The adjacency matrices, [K m, K m]."""
    ones = torch.ones(graph.edge_index.shape[1], device=graph.edge_index.device)
    return SparseMatrix.of_edges(graph.edge_index, ones, nodes=graph.nodes)


def _means(graph: BatchedGraph) -> SparseMatrix:
    """The adjacency matrices with rows that add up to one, [K m, K m]."""
    target = graph.edge_index[1]
    share = 1 / torch.bincount(target, minlength=graph.nodes).clamp(min=1).float()
    return SparseMatrix.of_edges(graph.edge_index, share[target], nodes=graph.nodes)


def _gcn(layer: GCNConv, graph: BatchedGraph) -> Layer:
    matrix = _normalised(graph, improved=layer.improved, loops=layer.add_self_loops)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        return _biased(graph.spread(matrix, graph.linear(x, weights["lin.weight"])), weights.get("bias"))

    return step


def _sgc(layer: SGConv, graph: BatchedGraph) -> Layer:
    matrix = _normalised(graph, improved=False, loops=layer.add_self_loops)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        hidden = graph.linear(x, weights["lin.weight"])
        for _ in range(layer.K):
            hidden = graph.spread(matrix, hidden)
        return _biased(hidden, weights.get("lin.bias"))

    return step


def _sage(layer: SAGEConv, graph: BatchedGraph) -> Layer:
    """Neighbours first, as in PyG: a maximum cannot change places, and over the constant features it is taken once."""
    means = _means(graph) if layer.aggr == "mean" else None
    over_features: list[SparseMatrix | Tensor] = []

    def heard(x: SparseMatrix | Tensor) -> SparseMatrix | Tensor:
        if x is graph.x:
            if not over_features:
                over_features.append(_heard_features(graph, means))
            return over_features[0]
        assert isinstance(x, Tensor)  # noqa: S101  # only features are sparse
        return graph.spread(means, x) if means else _largest(x, graph)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        left = _biased(graph.linear(heard(x), weights["lin_l.weight"]), weights.get("lin_l.bias"))
        return left + graph.linear(x, weights["lin_r.weight"])

    return step


def _largest(hidden: Tensor, graph: BatchedGraph) -> Tensor:
    """The largest of the neighbours' values, [K, m, c]; 0 without neighbours. Ties share a gradient, as in PyG."""
    source, target = graph.edge_index
    largest: Tensor = scatter(hidden.flatten(0, 1)[source], target, dim=0, dim_size=graph.nodes, reduce="max")
    return graph.by_graph(largest)


def _heard_features(graph: BatchedGraph, means: SparseMatrix | None) -> SparseMatrix | Tensor:
    """The neighbours' features, averaged or their maximum, in the layout of the features."""
    if isinstance(graph.x, Tensor):
        return graph.spread(means, graph.x) if means else _largest(graph.x, graph)
    heard = []
    for k in range(graph.count):  # one graph at a time: the dense features of all might not fit
        within = (graph.edge_index[1] // graph.size) == k
        source, target = graph.edge_index[:, within] - k * graph.size
        values = graph.features_of(k)[source]
        heard.append(scatter(values, target, dim=0, dim_size=graph.size, reduce="mean" if means else "max"))
    return side_by_side(heard, graph.size, sparse=True)


def _gin(layer: GINConv, graph: BatchedGraph) -> Layer:
    matrix = _sums(graph)
    names = list(layer.nn.named_children())

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        first, *rest = names
        own = graph.linear(x, weights[f"nn.{first[0]}.weight"])
        own = (1 + weights["eps"][:, :, None]) * own + graph.spread(matrix, own)
        hidden = _biased(own, weights.get(f"nn.{first[0]}.bias"))
        for name, module in rest:
            if isinstance(module, nn.ReLU):
                hidden = torch.relu(hidden)
            else:
                hidden = _biased(graph.linear(hidden, weights[f"nn.{name}.weight"]), weights.get(f"nn.{name}.bias"))
        return hidden

    return step


def _gat(layer: GATConv, graph: BatchedGraph) -> Layer:
    edges, _ = remove_self_loops(graph.edge_index)
    source, target = add_self_loops(edges, num_nodes=graph.nodes)[0] if layer.add_self_loops else graph.edge_index

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        hidden = graph.linear(x, weights["lin.weight"]).unflatten(2, (layer.heads, layer.out_channels))
        asked, asking = ((hidden * weights[name]).sum(-1).flatten(0, 1) for name in ("att_src", "att_dst"))
        fit = nn.functional.leaky_relu(asked[source] + asking[target], layer.negative_slope)  # [E, heads]
        share = softmax(fit, target, num_nodes=graph.nodes)
        flat = hidden.flatten(0, 1)  # [K m, heads, out]
        heard = torch.zeros_like(flat).index_add(0, target, share[:, :, None] * flat[source])
        heard = graph.by_graph(heard)
        return _biased(heard.flatten(2) if layer.concat else heard.mean(2), weights.get("bias"))

    return step


def _plain_perceptron(module: nn.Module) -> bool:
    parts = list(module.children())
    known = type(module) is nn.Sequential and all(type(part) in (nn.Linear, nn.ReLU) for part in parts)
    return known and bool(parts) and type(parts[0]) is nn.Linear


# for each layer: whether its options are those known here, and how it is stacked
_LAYERS: dict[type[nn.Module], tuple[Callable[..., bool], Callable[..., Layer]]] = {
    GCNConv: (lambda layer: layer.normalize and layer.aggr == "add", _gcn),
    SGConv: (lambda layer: layer.aggr == "add", _sgc),
    SAGEConv: (
        lambda layer: layer.aggr in ("mean", "max") and layer.root_weight and not (layer.normalize or layer.project),
        _sage,
    ),
    GINConv: (lambda layer: layer.aggr == "add" and _plain_perceptron(layer.nn), _gin),
    GATConv: (
        lambda layer: (
            layer.aggr == "add"
            and layer.lin is not None
            and layer.lin_edge is None
            and layer.res is None
            and layer.dropout == 0
        ),
        _gat,
    ),
}
