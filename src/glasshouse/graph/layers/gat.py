"""GAT's convolution: neighbours weighted by attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.attention import Affine, Attention, PairAttention, PairScores
from glasshouse.graph.rule.incremental.operations import (
    added,
    batched_maps,
    batched_vectors,
    edge_features,
    loop_fill,
    mapped,
)
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, attended, attention_edges, biased

__all__: list[str] = []


def _toggled(layers: Sequence[GATConv], build: Builder, x: Slot, *, edge_attr: Tensor | None = None) -> Slot:
    layer = layers[0]
    if not layer.add_self_loops or (edge_attr is not None and layer.lin_edge is not None):
        made = build.message(PairAttention(scores=_scores(layers, edge_attr)), x)
    else:
        made = _plain_attention(layers, build, x)
    return made if layer.res is None else added(build, made, mapped(build, x, [layer.res for layer in layers]))


def _plain_attention(layers: Sequence[GATConv], build: Builder, x: Slot) -> Slot:
    return build.message(
        Attention(
            weight=batched_maps([layer.lin for layer in layers]),
            source=torch.cat([layer.att_src.detach() for layer in layers]),
            receiver=torch.cat([layer.att_dst.detach() for layer in layers]),
            bias=batched_vectors([layer.bias for layer in layers]),
            slope=float(layers[0].negative_slope),
            concat=bool(layers[0].concat),
        ),
        x,
    )


def _scores(layers: Sequence[GATConv], edge_attr: Tensor | None) -> PairScores:
    """GAT's scores are sums of one number per end and edge, so that only these are made for each pair."""
    layer = layers[0]
    weight = batched_maps([layer.lin for layer in layers])
    edges = None
    if edge_attr is not None and layer.lin_edge is not None:
        features = edge_features([layer.lin_edge for layer in layers], edge_attr)
        narrow = _towards(batched_maps([layer.lin_edge for layer in layers]), [layer.att_edge for layer in layers])
        edges = replace(features, weight=narrow)
    return PairScores(
        sender=Affine(weight=_towards(weight, [layer.att_src for layer in layers]), bias=None),
        receiver=Affine(weight=_towards(weight, [layer.att_dst for layer in layers]), bias=None),
        values=Affine(weight=weight, bias=None),
        vector=weight.new_ones(len(layers), layer.heads, 1),
        edges=edges,
        fill=loop_fill(layer),
        heads=layer.heads,
        slope=float(layer.negative_slope),
        concat=bool(layer.concat),
        bias=batched_vectors([layer.bias for layer in layers]),
    )


def _towards(weight: Tensor, vectors: Sequence[Tensor]) -> Tensor:
    """Maps [models, width, heads * channels] followed by products with vectors [1, heads, channels] of each model."""
    vector = torch.cat([one.detach() for one in vectors]).unsqueeze(1)
    return (weight.view(*weight.shape[:2], *vector.shape[2:]) * vector).sum(-1)


def _batched(layer: GATConv, graph: BatchedGraph) -> Layer:
    edges = attention_edges(graph, loops=layer.add_self_loops)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        hidden = graph.linear(x, weights["lin.weight"]).unflatten(2, (layer.heads, layer.out_channels))
        senders, receivers = ((hidden * weights[name]).sum(-1).flatten(0, 1) for name in ("att_src", "att_dst"))
        fit = nn.functional.leaky_relu(senders[edges.source] + receivers[edges.target], layer.negative_slope)
        sums = attended(graph, edges, fit, hidden, dropout=layer.dropout)
        sums = sums.flatten(2) if layer.concat else sums.mean(2)
        if layer.res is not None:
            sums = sums + graph.linear(x, weights["res.weight"])
        return biased(sums, weights.get("bias"))

    return step


def _plain(layer: GATConv) -> bool:
    """One linear map for both ends, and no edge values."""
    return layer.aggr == "add" and layer.lin is not None and layer.lin_edge is None


def _can_toggle(layer: GATConv) -> bool:
    filled = not layer.add_self_loops or layer.fill_value == "mean" or isinstance(layer.fill_value, float | int)
    return layer.aggr in ("add", "sum") and layer.lin is not None and (layer.lin_edge is None or filled)


register_layer_type(
    LayerType(
        convolution=GATConv,
        can_toggle=_can_toggle,
        toggled=_toggled,
        arguments=("edge_attr",),
        can_batch=_plain,
        batched=_batched,
    )
)
