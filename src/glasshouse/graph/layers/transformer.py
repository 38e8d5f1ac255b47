"""The graph transformer's convolution: attention by products of queries and keys."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import TransformerConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.layers.base import project
from glasshouse.graph.rule.toggle.layers.pair_attention import PairAttention
from glasshouse.graph.rule.toggle.layers.pair_scores import PairScores
from glasshouse.graph.rule.toggle.layers.weights import batched_maps
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.rule.toggle.pieces import added, affine, edge_features, mapped

__all__: list[str] = []


def _toggled(layers: Sequence[TransformerConv], build: Builder, x: Slot, *, edge_attr: Tensor | None = None) -> Slot:
    layer = layers[0]
    edges = None
    if edge_attr is not None and layer.lin_edge is not None:
        edges = edge_features([layer.lin_edge for layer in layers], edge_attr)
    scores = PairScores(
        sender=affine([layer.lin_key for layer in layers]),
        receiver=affine([layer.lin_query for layer in layers]),
        values=affine([layer.lin_value for layer in layers]),
        edges=edges,
        edges_sent=True,
        fill=None,
        heads=layer.heads,
        concat=bool(layer.concat),
    )
    made = build.message(PairAttention(scores=scores), x)
    if not layer.root_weight:
        return made
    own = mapped(build, x, [layer.lin_skip for layer in layers])
    if layer.lin_beta is None:
        return added(build, made, own)
    gate = batched_maps([layer.lin_beta for layer in layers])

    def gated(made: Tensor, own: Tensor) -> Tensor:
        share = project(torch.cat([made, own, made - own], dim=-1), gate).sigmoid()
        return share * own + (1 - share) * made

    return build.rows(gated, made, own)


register_layer_type(
    LayerType(
        convolution=TransformerConv,
        can_toggle=lambda c: c.aggr in ("add", "sum") and isinstance(c.in_channels, int),
        toggled=_toggled,
        arguments=("edge_attr",),
    )
)
