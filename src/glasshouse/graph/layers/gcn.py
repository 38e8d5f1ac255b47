"""GCN's convolution: a sum over neighbours, divided by the root degrees of both ends."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import GCNConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.operations import batched_maps, batched_vectors, gcn_options, shared_weight
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.rule.incremental.sum import Summed
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, biased, normalised, summed

__all__: list[str] = []


def _toggled(layers: Sequence[GCNConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    if not shared_weight(edge_weight):
        return None
    layer, edges = layers[0], None if edge_weight is None else edge_weight[:, 0]
    options = gcn_options(
        normalize=layer.normalize, loops=layer.add_self_loops, improved=layer.improved, edge_weight=edges
    )
    weight = batched_maps([layer.lin for layer in layers])
    bias = batched_vectors([layer.bias for layer in layers])
    return build.message(Summed.of(weight=weight, bias=bias, **options), x)


def _batched(layer: GCNConv, graph: BatchedGraph, *, edge_weight: Tensor | None = None) -> Layer:
    if layer.normalize:
        matrix = normalised(graph, edge_weight, improved=layer.improved, loops=layer.add_self_loops)
    else:
        matrix = summed(graph, edge_weight)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        return biased(graph.spread(matrix, graph.linear(x, weights["lin.weight"])), weights.get("bias"))

    return step


register_layer_type(
    LayerType(
        convolution=GCNConv,
        can_toggle=lambda c: not c.cached and c.aggr in ("add", "sum"),
        toggled=_toggled,
        arguments=("edge_weight",),
        can_batch=lambda c: c.aggr == "add",
        batched=_batched,
        batched_arguments=("edge_weight",),
    )
)
