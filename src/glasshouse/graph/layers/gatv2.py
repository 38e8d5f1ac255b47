"""GATv2's convolution: attention whose scores are made for each pair of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import GATv2Conv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.layers.pair_attention import PairAttention
from glasshouse.graph.rule.toggle.layers.pair_scores import PairScores
from glasshouse.graph.rule.toggle.layers.weights import batched_vectors
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.rule.toggle.pieces import added, affine, edge_features, loop_fill, mapped

__all__: list[str] = []


def _toggled(layers: Sequence[GATv2Conv], build: Builder, x: Slot, *, edge_attr: Tensor | None = None) -> Slot:
    layer = layers[0]
    scores = PairScores(
        sender=affine([layer.lin_l for layer in layers]),
        receiver=affine([layer.lin_r for layer in layers]),
        vector=torch.cat([layer.att.detach() for layer in layers]),
        edges=None if edge_attr is None else edge_features([layer.lin_edge for layer in layers], edge_attr),
        fill=loop_fill(layer),
        heads=layer.heads,
        slope=float(layer.negative_slope),
        concat=bool(layer.concat),
        bias=batched_vectors([layer.bias for layer in layers]),
    )
    made = build.message(PairAttention(scores=scores), x)
    return made if layer.res is None else added(build, made, mapped(build, x, [layer.res for layer in layers]))


def _can_toggle(layer: GATv2Conv) -> bool:
    filled = not layer.add_self_loops or layer.fill_value == "mean" or isinstance(layer.fill_value, float | int)
    return layer.aggr in ("add", "sum") and filled and isinstance(layer.in_channels, int)


register_layer_type(
    LayerType(convolution=GATv2Conv, can_toggle=_can_toggle, toggled=_toggled, arguments=("edge_attr",))
)
