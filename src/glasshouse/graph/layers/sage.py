"""GraphSAGE's convolution: the neighbours' mean or maximum, plus a node's own values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import scatter

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.layers.maximum import Maximum
from glasshouse.graph.rule.toggle.layers.summed import Summed
from glasshouse.graph.rule.toggle.layers.weights import batched_maps, batched_vectors
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.rule.toggle.pieces import added, mapped
from glasshouse.graph.training.batched.graphs import BatchedGraph, side_by_side
from glasshouse.graph.training.batched.layers import Layer, Weights, biased
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


def _toggled(layers: Sequence[SAGEConv], build: Builder, x: Slot) -> Slot:
    layer, senders = layers[0], x
    weight = batched_maps([layer.lin_l for layer in layers])
    bias = batched_vectors([layer.lin_l.bias for layer in layers])
    root = batched_maps([layer.lin_r for layer in layers]) if layer.root_weight and not layer.project else None
    if layer.project:  # only what senders send is mapped first
        senders = build.rows(torch.relu, mapped(build, x, [layer.lin for layer in layers]))
    if layer.aggr == "max":
        made = build.message(Maximum(weight=weight, root=root, bias=bias), senders)
    else:
        how = "mean" if layer.aggr == "mean" else "none"
        made = build.message(Summed.of(weight=weight, bias=bias, root=root, normalisation=how), senders)
    if layer.project and layer.root_weight:
        made = added(build, made, mapped(build, x, [layer.lin_r for layer in layers]))
    return build.rows(_unit, made) if layer.normalize else made


def _unit(rows: Tensor) -> Tensor:
    return torch.nn.functional.normalize(rows, p=2.0, dim=-1)


def _batched(layer: SAGEConv, graph: BatchedGraph) -> Layer:
    """Neighbours first, as in PyG: a maximum cannot be swapped with the map; that of the features is taken once."""
    means = _means(graph) if layer.aggr == "mean" else None
    over_features: list[SparseMatrix | Tensor] = []

    def of_neighbours(x: SparseMatrix | Tensor) -> SparseMatrix | Tensor:
        if x is graph.x:
            if not over_features:
                over_features.append(_features_of_neighbours(graph, means))
            return over_features[0]
        assert isinstance(x, Tensor)  # noqa: S101  # only the features are sparse
        return graph.spread(means, x) if means else _largest(x, graph)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        left = biased(graph.linear(of_neighbours(x), weights["lin_l.weight"]), weights.get("lin_l.bias"))
        return left + graph.linear(x, weights["lin_r.weight"])

    return step


def _means(graph: BatchedGraph) -> SparseMatrix:
    """The adjacency matrices with rows that add up to one, [K m, K m]."""
    target = graph.edge_index[1]
    share = 1 / torch.bincount(target, minlength=graph.nodes).clamp(min=1).float()
    return SparseMatrix.of_edges(graph.edge_index, share[target], nodes=graph.nodes)


def _largest(hidden: Tensor, graph: BatchedGraph) -> Tensor:
    """The largest of the neighbours' values, [K, m, c]; 0 without neighbours. Ties share the gradient, as in PyG."""
    source, target = graph.edge_index
    largest: Tensor = scatter(hidden.flatten(0, 1)[source], target, dim=0, dim_size=graph.nodes, reduce="max")
    return graph.by_graph(largest)


def _features_of_neighbours(graph: BatchedGraph, means: SparseMatrix | None) -> SparseMatrix | Tensor:
    """The mean or maximum of the neighbours' features, in the layout of the features."""
    if isinstance(graph.x, Tensor):
        return graph.spread(means, graph.x) if means else _largest(graph.x, graph)
    found = []
    for k in range(graph.count):  # one graph at a time: the dense features of all might not fit
        within = (graph.edge_index[1] // graph.size) == k
        source, target = graph.edge_index[:, within] - k * graph.size
        values = graph.features_of(k)[source]
        found.append(scatter(values, target, dim=0, dim_size=graph.size, reduce="mean" if means else "max"))
    return side_by_side(found, graph.size, sparse=True)


register_layer_type(
    LayerType(
        convolution=SAGEConv,
        can_toggle=lambda c: c.aggr in ("max", "mean", "add", "sum"),
        toggled=_toggled,
        can_batch=lambda c: c.aggr in ("mean", "max") and c.root_weight and not (c.normalize or c.project),
        batched=_batched,
    )
)
