"""SGC's convolution: K averages in a row and one linear map."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import SGConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.operations import batched_maps, batched_vectors, gcn_options, shared_weight
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.rule.incremental.sum import Summed
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, biased, normalised

__all__: list[str] = []


def _toggled(layers: Sequence[SGConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    """Averaging and the linear map commute: map first, so that the K averages have one column per class only."""
    if not shared_weight(edge_weight):
        return None
    layer, edges = layers[0], None if edge_weight is None else edge_weight[:, 0]
    options = gcn_options(normalize=True, loops=layer.add_self_loops, improved=False, edge_weight=edges)
    weight = batched_maps([layer.lin for layer in layers])
    bias = batched_vectors([layer.lin.bias for layer in layers])
    x = build.message(Summed.of(weight=weight, bias=bias if layer.K == 1 else None, **options), x)
    for step in range(2, layer.K + 1):
        last = Summed(
            weight=None,
            root=None,
            bias=bias if step == layer.K else None,
            models=len(layers),
            width=x.width,
            item=weight.element_size(),
            **options,
        )
        x = build.message(last, x)
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
        can_toggle=lambda c: not c.cached and c.aggr in ("add", "sum"),
        toggled=_toggled,
        arguments=("edge_weight",),
        can_batch=lambda c: c.aggr == "add",
        batched=_batched,
        batched_arguments=("edge_weight",),
    )
)
