"""GraphSAGE's convolution: the neighbours' mean or maximum, plus a node's own values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import scatter

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.maximum import Maximum
from glasshouse.graph.rule.incremental.operations import added, batched_maps, batched_vectors, mapped
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.rule.incremental.sum import Summed
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix, side_by_side
from glasshouse.graph.training.many.layers import Layer, Weights, biased, largest, summed

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
    matrix = summed(graph, mean=layer.aggr == "mean") if layer.aggr != "max" else None

    def received(x: SparseMatrix | Tensor, weight: Tensor) -> Tensor:
        """Neighbours first, as in PyG: a maximum cannot be swapped with the map. That of the features is taken once."""
        if x is graph.x:
            kept = graph.kept(("of neighbours", layer.aggr), lambda: _features_of_neighbours(graph, matrix, layer.aggr))
            return graph.linear(kept, weight)
        if matrix is not None and isinstance(x, SparseMatrix):
            return graph.spread(matrix, graph.linear(x, weight))
        x = graph.dense(x)
        return graph.linear(graph.spread(matrix, x) if matrix else largest(x, graph), weight)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        sent = x
        if layer.project:
            sent = torch.relu(biased(graph.linear(x, weights["lin.weight"]), weights.get("lin.bias")))
        out = biased(received(sent, weights["lin_l.weight"]), weights.get("lin_l.bias"))
        if layer.root_weight:
            out = out + graph.linear(x, weights["lin_r.weight"])
        return nn.functional.normalize(out, dim=-1) if layer.normalize else out

    return step


def _features_of_neighbours(graph: BatchedGraph, matrix: SparseMatrix | None, aggr: str) -> SparseMatrix | Tensor:
    """The mean, sum or maximum of the neighbours' features, in the layout of the features."""
    if isinstance(graph.x, Tensor):
        return graph.spread(matrix, graph.x) if matrix else largest(graph.x, graph)
    found = []
    for k in range(graph.count):  # one graph at a time: the dense features of all might not fit
        within = (graph.edge_index[1] // graph.size) == k
        source, target = graph.edge_index[:, within] - k * graph.size
        values = graph.features_of(k)[source]
        reduce = "sum" if aggr == "add" else aggr
        found.append(scatter(values, target, dim=0, dim_size=graph.size, reduce=reduce))
    return side_by_side(found, graph.size, sparse=True)


register_layer_type(
    LayerType(
        convolution=SAGEConv,
        can_toggle=lambda c: c.aggr in ("max", "mean", "add", "sum"),
        toggled=_toggled,
        can_batch=lambda c: c.aggr in ("mean", "max", "add", "sum"),
        batched=_batched,
    )
)
