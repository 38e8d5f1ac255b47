"""The graph transformer's convolution: attention by products of queries and keys."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import TransformerConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.attention import PairAttention, PairScores
from glasshouse.graph.rule.incremental.layer import project
from glasshouse.graph.rule.incremental.operations import added, affine, batched_maps, edge_features, mapped
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, attended, attention_edges, biased

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


def _batched(layer: TransformerConv, graph: BatchedGraph) -> Layer:
    edges = attention_edges(graph, loops=False)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        def mapped(name: str) -> Tensor:
            return biased(graph.linear(x, weights[f"{name}.weight"]), weights.get(f"{name}.bias"))

        query, key, value = (
            mapped(name).unflatten(2, (layer.heads, layer.out_channels))
            for name in ("lin_query", "lin_key", "lin_value")
        )
        fit = (query.flatten(0, 1)[edges.target] * key.flatten(0, 1)[edges.source]).sum(-1)  # [E, heads]
        out = attended(graph, edges, fit / math.sqrt(layer.out_channels), value, dropout=layer.dropout)
        out = out.flatten(2) if layer.concat else out.mean(2)
        if not layer.root_weight:
            return out
        own = mapped("lin_skip")
        if layer.lin_beta is None:
            return out + own
        beta = graph.linear(torch.cat([out, own, out - own], dim=2), weights["lin_beta.weight"]).sigmoid()
        return beta * own + (1 - beta) * out

    return step


register_layer_type(
    LayerType(
        convolution=TransformerConv,
        can_toggle=lambda c: c.aggr in ("add", "sum") and isinstance(c.in_channels, int),
        toggled=_toggled,
        arguments=("edge_attr",),
        can_batch=lambda c: c.aggr == "add" and c.lin_edge is None,
        batched=_batched,
    )
)
