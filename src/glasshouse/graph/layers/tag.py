"""TAGConv: one linear map for each number of steps along the edges."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import TAGConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.operations import added, batched_vectors, mapped, spread, spread_options
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, biased, normalised, summed

__all__: list[str] = []


def _toggled(layers: Sequence[TAGConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    """``x W0 + A (x W1 + A (x W2 + ...)) + bias``."""
    options = spread_options(layers[0], edge_weight)
    if options is None:
        return None
    powers = len(layers[0].lins)
    bias = batched_vectors([layer.bias for layer in layers])
    made = mapped(build, x, [layer.lins[powers - 1] for layer in layers])
    for power in reversed(range(powers - 1)):
        own = mapped(build, x, [layer.lins[power] for layer in layers])
        made = added(build, spread(build, made, **options), own, bias=bias if power == 0 else None)
    return made


def _batched(layer: TAGConv, graph: BatchedGraph, *, edge_weight: Tensor | None = None) -> Layer:
    matrix = normalised(graph, edge_weight, loops=False) if layer.normalize else summed(graph, edge_weight)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        """Sum of A^k x W_k by Horner's rule, so that messages are as wide as the result and not as the features."""
        hidden = graph.linear(x, weights[f"lins.{layer.K}.weight"])
        for power in reversed(range(layer.K)):
            hidden = graph.linear(x, weights[f"lins.{power}.weight"]) + graph.spread(matrix, hidden)
        return biased(hidden, weights.get("bias"))

    return step


register_layer_type(
    LayerType(
        convolution=TAGConv,
        can_toggle=lambda c: c.aggr in ("add", "sum"),
        toggled=_toggled,
        arguments=("edge_weight",),
        can_batch=lambda c: c.aggr == "add",
        batched=_batched,
        batched_arguments=("edge_weight",),
    )
)
