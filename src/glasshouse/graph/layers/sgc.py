"""SGC's convolution: K averages in a row and one linear map."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import SGConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.layers.summed import Summed
from glasshouse.graph.rule.toggle.layers.weights import batched_maps, batched_vectors
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, biased, normalised
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


def _toggled(layers: Sequence[SGConv], build: Builder, x: Slot) -> Slot:
    """Averaging and the linear map commute: map first, so that the K averages have one column per class only."""
    weight = batched_maps([layer.lin for layer in layers])
    bias = batched_vectors([layer.lin.bias for layer in layers])
    first = Summed.of(weight=weight, bias=bias if layers[0].K == 1 else None, normalisation="symmetric")
    rest = [
        Summed(
            weight=None,
            root=None,
            bias=bias if step == layers[0].K else None,
            normalisation="symmetric",
            models=first.models,
            width=first.width,
            item=first.item,
        )
        for step in range(2, layers[0].K + 1)
    ]
    for step in (first, *rest):
        x = build.message(step, x)
    return x


def _batched(layer: SGConv, graph: BatchedGraph, *, edge_weight: Tensor | None = None) -> Layer:
    matrix = normalised(graph, edge_weight, loops=layer.add_self_loops)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        hidden = graph.linear(x, weights["lin.weight"])
        for _ in range(layer.K):
            hidden = graph.spread(matrix, hidden)
        return biased(hidden, weights.get("lin.bias"))

    return step


register_layer_type(
    LayerType(
        convolution=SGConv,
        can_toggle=lambda c: c.add_self_loops and not c.cached and c.aggr == "add",
        toggled=_toggled,
        can_batch=lambda c: c.aggr == "add",
        batched=_batched,
        batched_arguments=("edge_weight",),
    )
)
