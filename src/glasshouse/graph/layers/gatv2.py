"""GATv2's convolution: attention whose scores are taken after both ends are added."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.training.batched.attention import attended, attention_edges
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, biased
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


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


register_layer_type(
    LayerType(
        convolution=GATv2Conv,
        can_batch=lambda c: c.aggr in ("add", "sum") and isinstance(c.in_channels, int) and c.lin_edge is None,
        batched=_batched,
    )
)
