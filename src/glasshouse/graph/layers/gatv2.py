"""GATv2's convolution: attention whose scores are made for each pair of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.attention import PairAttention, PairScores
from glasshouse.graph.rule.incremental.operations import (
    added,
    affine,
    batched_vectors,
    edge_features,
    loop_fill,
    mapped,
)
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, attended, attention_edges, biased

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


def _batched(layer: GATv2Conv, graph: BatchedGraph) -> Layer:
    edges = attention_edges(graph, loops=layer.add_self_loops)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        def mapped(name: str) -> Tensor:
            rows = biased(graph.linear(x, weights[f"{name}.weight"]), weights.get(f"{name}.bias"))
            heads: Tensor = rows.unflatten(2, (layer.heads, layer.out_channels))
            return heads

        senders = mapped("lin_l")
        receivers = senders if layer.share_weights else mapped("lin_r")
        pairs = senders.flatten(0, 1)[edges.source] + receivers.flatten(0, 1)[edges.target]  # [E, heads, out]
        pairs = nn.functional.leaky_relu(pairs, layer.negative_slope).split(edges.counts)
        fit = torch.cat([(part * att).sum(-1) for part, att in zip(pairs, weights["att"].unbind(0), strict=True)])
        sums = attended(graph, edges, fit, senders, dropout=layer.dropout)
        sums = sums.flatten(2) if layer.concat else sums.mean(2)
        if layer.res is not None:
            sums = sums + graph.linear(x, weights["res.weight"])
        return biased(sums, weights.get("bias"))

    return step


def _can_toggle(layer: GATv2Conv) -> bool:
    filled = not layer.add_self_loops or layer.fill_value == "mean" or isinstance(layer.fill_value, float | int)
    return layer.aggr in ("add", "sum") and filled and isinstance(layer.in_channels, int)


register_layer_type(
    LayerType(
        convolution=GATv2Conv,
        can_toggle=_can_toggle,
        toggled=_toggled,
        arguments=("edge_attr",),
        can_batch=lambda c: c.aggr in ("add", "sum") and isinstance(c.in_channels, int) and c.lin_edge is None,
        batched=_batched,
    )
)
