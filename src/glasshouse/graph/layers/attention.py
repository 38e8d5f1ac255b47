"""Layer types whose messages are made for each pair of nodes: attention, and sums with features of edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch_geometric.nn import GATConv, GATv2Conv, GINEConv, TransformerConv

from glasshouse.graph.layers.layer_type import (
    LayerType,
    LeakySum,
    NotDescribed,
    Operations,
    adds,
    register_layer_type,
)


def _loops(layer: Any) -> Any:
    """The features of self-loops that a layer adds; None if it adds none."""
    fill = getattr(layer, "fill_value", 0.0)
    if not layer.add_self_loops or fill == "mean":
        return fill if layer.add_self_loops else None
    return float(fill) if isinstance(fill, float | int) else 0.0  # without features of edges it is not used


def _heads(layer: Any) -> dict[str, Any]:
    return {"heads": layer.heads, "concat": layer.concat, "dropout": layer.dropout}


def _gat(o: Operations, layer: GATConv, x: Any, edge_attr: Any = None) -> Any:
    def ends(o: Operations, x: Any) -> tuple[Any, Any, Any]:
        sent = o.linear(x, "lin")
        return o.rows(dot, sent, weights=("att_src",)), sent, o.rows(dot, sent, weights=("att_dst",))

    def dot(rows: Tensor, vector: Tensor) -> Tensor:
        """Products of each head with a vector, [..., heads]."""
        both: tuple[Tensor, Tensor] = tuple(one.unflatten(-1, (layer.heads, -1)) for one in (rows, vector))
        return (both[0] * both[1]).sum(-1)

    made = o.attend(
        x,
        ends,
        score=LeakySum(layer.negative_slope),
        loops=_loops(layer),
        edges=None if layer.lin_edge is None else edge_attr,
        edge=lambda o, rows: o.linear(rows, "lin_edge", towards="att_edge"),
        bias="bias",
        **_heads(layer),
    )
    return made if layer.res is None else o.add(made, o.linear(x, "res"))


def _gatv2(o: Operations, layer: GATv2Conv, x: Any, edge_attr: Any = None) -> Any:
    def ends(o: Operations, x: Any) -> tuple[Any, Any, Any]:
        shown = o.linear(x, "lin_l")
        return shown, shown, shown if layer.share_weights else o.linear(x, "lin_r")

    def score(shown: Tensor, asked: Tensor, edge: Tensor | None, vector: Tensor) -> Tensor:
        shown = shown if edge is None else shown + edge
        return (leaky_relu(shown + asked, layer.negative_slope) * vector).sum(-1)

    made = o.attend(
        x,
        ends,
        score=score,
        weights=("att",),
        loops=_loops(layer),
        edges=edge_attr,
        edge=lambda o, rows: o.linear(rows, "lin_edge"),
        bias="bias",
        **_heads(layer),
    )
    return made if layer.res is None else o.add(made, o.linear(x, "res"))


def _product(shown: Tensor, asked: Tensor, edge: Tensor | None) -> Tensor:
    shown = shown if edge is None else shown + edge
    return (shown * asked).sum(-1).div(float(shown.shape[-1]) ** 0.5)


def _with_edge(_shown: Any, sent: Tensor, _asked: Any, edge: Tensor | None) -> Tensor:
    return sent if edge is None else sent + edge


def _transformer(o: Operations, layer: TransformerConv, x: Any, edge_attr: Any = None) -> Any:
    def ends(o: Operations, x: Any) -> tuple[Any, Any, Any]:
        asked, shown, sent = (o.linear(x, name) for name in ("lin_query", "lin_key", "lin_value"))
        return shown, sent, asked

    made = o.attend(
        x,
        ends,
        score=_product,
        message=_with_edge,
        edges=None if layer.lin_edge is None else edge_attr,
        edge=lambda o, rows: o.linear(rows, "lin_edge"),
        **_heads(layer),
    )
    if not layer.root_weight:
        return made
    own = o.linear(x, "lin_skip")
    if layer.lin_beta is None:
        return o.add(made, own)
    gate = o.linear(o.rows(lambda made, own: torch.cat([made, own, made - own], dim=-1), made, own), "lin_beta")
    return o.rows(_gated, made, own, gate)


def _gated(made: Tensor, own: Tensor, gate: Tensor) -> Tensor:
    share = gate.sigmoid()
    return share * own + (1 - share) * made


def _cut_sum(_shown: Any, sent: Tensor, _asked: Any, edge: Tensor) -> Tensor:
    return torch.relu(sent + edge)


def _gine(o: Operations, layer: GINEConv, x: Any, edge_attr: Any = None) -> Any:
    if edge_attr is None:
        raise NotDescribed
    sums = o.attend(
        x,
        lambda _, x: (None, x, None),
        message=_cut_sum,
        mean=False,
        edges=edge_attr,
        edge=None if layer.lin is None else lambda o, rows: o.linear(rows, "lin"),
    )
    return o.module(o.rows(lambda sums, x, eps: sums + (1 + eps) * x, sums, x, weights=("eps",)), "nn")


def _known_fill(layer: Any) -> bool:
    return not layer.add_self_loops or layer.fill_value == "mean" or isinstance(layer.fill_value, float | int)


_FEATURES = ("edge_attr",)
for _one in (
    LayerType(
        convolution=GATConv,
        formula=_gat,
        can_toggle=lambda c: adds(c) and c.lin is not None and (c.lin_edge is None or _known_fill(c)),
        can_train=lambda c: adds(c) and c.lin is not None and c.lin_edge is None,
        edges=_FEATURES,
    ),
    LayerType(
        convolution=GATv2Conv,
        formula=_gatv2,
        can_toggle=lambda c: adds(c) and _known_fill(c) and isinstance(c.in_channels, int),
        can_train=lambda c: adds(c) and isinstance(c.in_channels, int) and c.lin_edge is None,
        edges=_FEATURES,
    ),
    LayerType(
        convolution=TransformerConv,
        formula=_transformer,
        can_toggle=lambda c: adds(c) and isinstance(c.in_channels, int),
        can_train=lambda c: adds(c) and isinstance(c.in_channels, int) and c.lin_edge is None,
        edges=_FEATURES,
    ),
    LayerType(convolution=GINEConv, formula=_gine, edges=_FEATURES, modules=("nn",)),
):
    register_layer_type(_one)
