"""The graph transformer's convolution: attention by keys and queries."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.nn import TransformerConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.training.batched.attention import attended, attention_edges
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, biased
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


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
        can_batch=lambda c: c.aggr == "add" and c.lin_edge is None,
        batched=_batched,
    )
)
