"""GraphConv: the neighbours' weighted sum, mean or maximum, plus a node's own values."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import GraphConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.layers.maximum import Maximum
from glasshouse.graph.rule.toggle.layers.summed import Summed
from glasshouse.graph.rule.toggle.layers.weights import batched_maps, batched_vectors
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.rule.toggle.pieces import shared_weight

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


register_layer_type(
    LayerType(
        convolution=GraphConv,
        can_toggle=lambda c: c.aggr in ("add", "sum", "mean", "max"),
        toggled=_toggled,
        arguments=("edge_weight",),
    )
)
