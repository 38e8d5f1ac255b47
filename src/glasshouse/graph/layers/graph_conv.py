"""GraphConv: the neighbours' weighted sum, mean or maximum, plus a node's own values."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import GraphConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.maximum import Maximum
from glasshouse.graph.rule.incremental.operations import batched_maps, batched_vectors, shared_weight
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.rule.incremental.sum import Summed
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, biased, largest, summed

__all__: list[str] = []


def _toggled(layers: Sequence[GraphConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    aggr = layers[0].aggr
    if not shared_weight(edge_weight) or (aggr == "max" and edge_weight is not None):
        return None
    edges = None if edge_weight is None else edge_weight[:, 0]
    weight = batched_maps([layer.lin_rel for layer in layers])
    root = batched_maps([layer.lin_root for layer in layers])
    bias = batched_vectors([layer.lin_rel.bias for layer in layers])
    if aggr == "max":
        return build.message(Maximum(weight=weight, root=root, bias=bias), x)
    how = "mean" if aggr == "mean" else "none"
    return build.message(Summed.of(weight=weight, bias=bias, root=root, normalisation=how, edge_weight=edges), x)


def _batched(layer: GraphConv, graph: BatchedGraph, *, edge_weight: Tensor | None = None) -> Layer:
    matrix = None if layer.aggr == "max" else summed(graph, edge_weight, mean=layer.aggr == "mean")

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        if matrix is None:
            received = graph.linear(largest(graph.dense(x), graph, edge_weight), weights["lin_rel.weight"])
        else:
            received = graph.spread(matrix, graph.linear(x, weights["lin_rel.weight"]))
        return biased(received, weights.get("lin_rel.bias")) + graph.linear(x, weights["lin_root.weight"])

    return step


register_layer_type(
    LayerType(
        convolution=GraphConv,
        can_toggle=lambda c: c.aggr in ("add", "sum", "mean", "max"),
        toggled=_toggled,
        arguments=("edge_weight",),
        can_batch=lambda c: c.aggr in ("add", "sum", "mean", "max"),
        batched=_batched,
        batched_arguments=("edge_weight",),
    )
)
