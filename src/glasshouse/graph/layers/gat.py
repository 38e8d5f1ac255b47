"""GAT's convolution: neighbours weighted by attention."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.layers.attention import Attention
from glasshouse.graph.rule.toggle.layers.weights import batched_maps, batched_vectors
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.training.batched.attention import attended, attention_edges
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, biased
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


def _toggled(layers: Sequence[GATConv], build: Builder, x: Slot) -> Slot:
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
    return _plain(layer) and layer.res is None and bool(layer.add_self_loops)


register_layer_type(
    LayerType(
        convolution=GATConv,
        can_toggle=_can_toggle,
        toggled=_toggled,
        can_batch=_plain,
        batched=_batched,
    )
)
