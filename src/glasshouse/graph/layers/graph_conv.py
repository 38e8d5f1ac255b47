"""GraphConv: the neighbours' sum, mean or maximum, plus a node's own values."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import GraphConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, biased, largest, summed
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


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
        can_batch=lambda c: c.aggr in ("add", "sum", "mean", "max"),
        batched=_batched,
        batched_arguments=("edge_weight",),
    )
)
