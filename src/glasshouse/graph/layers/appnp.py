"""APPNP: values spread by personalised PageRank; it has no weights of its own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import APPNP

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.operations import added, spread, spread_options
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, normalised, summed

__all__: list[str] = []


def _toggled(layers: Sequence[APPNP], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    options = spread_options(layers[0], edge_weight)
    if options is None:
        return None
    made, alpha = x, layers[0].alpha
    for _ in range(layers[0].K):
        made = added(build, spread(build, made, **options), x, factors=(1 - alpha, alpha))
    return made


def _batched(layer: APPNP, graph: BatchedGraph, *, edge_weight: Tensor | None = None) -> Layer:
    matrix = (
        normalised(graph, edge_weight, loops=layer.add_self_loops) if layer.normalize else summed(graph, edge_weight)
    )

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        start = hidden = graph.dense(x)
        for _ in range(layer.K):
            hidden = (1 - layer.alpha) * graph.spread(matrix, hidden) + layer.alpha * start
        return hidden

    return step


register_layer_type(
    LayerType(
        convolution=APPNP,
        can_toggle=lambda c: c.aggr in ("add", "sum") and not c.cached and c.K > 0,
        toggled=_toggled,
        arguments=("edge_weight",),
        can_batch=lambda c: c.aggr == "add" and c.dropout == 0,
        batched=_batched,
        batched_arguments=("edge_weight",),
    )
)
