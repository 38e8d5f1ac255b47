"""Layer types whose messages are made for each pair of nodes: attention, and sums with features of edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch_geometric import nn as pyg

from glasshouse.graph.layers.layer_type import (
    LayerType,
    LeakySum,
    NotDescribed,
    Operations,
    adds,
    is_elementwise,
    register_layer_type,
)
from glasshouse.graph.layers.sums import degree


def _loops(layer: Any) -> Any:
    """The features of self-loops that a layer adds; None if it adds none."""
    fill = getattr(layer, "fill_value", 0.0)
    if not layer.add_self_loops or fill == "mean":
        return fill if layer.add_self_loops else None
    return float(fill) if isinstance(fill, float | int) else 0.0  # without features of edges it is not used


def _heads(layer: Any) -> dict[str, Any]:
    return {"heads": layer.heads, "concat": layer.concat, "dropout": layer.dropout}


def _gat(o: Operations, layer: pyg.GATConv, x: Any, edge_attr: Any = None) -> Any:
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


def _gatv2(o: Operations, layer: pyg.GATv2Conv, x: Any, edge_attr: Any = None) -> Any:
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


def _transformer(o: Operations, layer: pyg.TransformerConv, x: Any, edge_attr: Any = None) -> Any:
    def ends(o: Operations, x: Any) -> tuple[Any, Any, Any]:
        asked, shown, sent = (o.linear(x, name) for name in ("lin_query", "lin_key", "lin_value"))
        return shown, sent, asked

    made = o.attend(
        x,
        ends,
        score=_product,
        message=lambda _shown, sent, _asked, edge: sent if edge is None else sent + edge,
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


def _gine(o: Operations, layer: pyg.GINEConv, x: Any, edge_attr: Any = None) -> Any:
    if edge_attr is None:
        raise NotDescribed
    sums = o.attend(
        x,
        lambda _, x: (None, x, None),
        message=lambda _shown, sent, _asked, edge: torch.relu(sent + edge),
        mean=False,
        edges=edge_attr,
        edge=None if layer.lin is None else lambda o, rows: o.linear(rows, "lin"),
    )
    return o.module(o.rows(lambda sums, x, eps: sums + (1 + eps) * x, sums, x, weights=("eps",)), "nn")


def _supergat(o: Operations, layer: pyg.SuperGATConv, x: Any) -> Any:
    def ends(o: Operations, x: Any) -> tuple[Any, Any, Any]:
        shown = o.linear(x, "lin")
        return shown, shown, shown

    def score(shown: Tensor, asked: Tensor, _edge: Any, left: Tensor, right: Tensor) -> Tensor:
        alpha = ((shown * left).sum(-1) + (asked * right).sum(-1)) * (shown * asked).sum(-1).sigmoid()
        return leaky_relu(alpha, layer.negative_slope)

    def product(shown: Tensor, asked: Tensor, edge: Any) -> Tensor:
        return leaky_relu(_product(shown, asked, edge), layer.negative_slope)

    mixed = layer.attention_type == "MX"
    weights = ("att_l", "att_r") if mixed else ()
    options = {"loops": _loops(layer), "bias": "bias", **_heads(layer)}
    return o.attend(x, ends, score=score if mixed else product, weights=weights, **options)


def _fa(o: Operations, layer: pyg.FAConv, x: Any, x_0: Any) -> Any:
    """Both ends' root degrees divide a message: the sender's goes with its values, the receiver's is applied last."""
    loops: Any = "added" if layer.add_self_loops else "listed"
    count = degree(o, x, loops=loops)
    scale = o.rows(lambda count: count.clamp(min=0).rsqrt().masked_fill(count <= 0, 0), count)

    def ends(o: Operations, both: Any) -> tuple[Any, Any, Any]:
        x = o.rows(lambda rows: rows[..., 1:], both)
        return o.linear(x, "att_l"), o.rows(lambda rows: rows[..., :1] * rows[..., 1:], both), o.linear(x, "att_r")

    def message(shown: Tensor, sent: Tensor, asked: Tensor, _edge: Any) -> Tensor:
        return (shown + asked).tanh() * sent

    joined = o.rows(lambda scale, x: torch.cat([scale.expand(*x.shape[:2], 1), x], dim=-1), scale, x)
    made = o.attend(joined, ends, message=message, mean=False, loops=_loops(layer), dropout=layer.dropout)
    return o.rows(lambda made, scale, first: scale * made + layer.eps * first, made, scale, x_0)


def _res_gated(o: Operations, layer: pyg.ResGatedGraphConv, x: Any) -> Any:
    def message(shown: Tensor, sent: Tensor, asked: Tensor, _edge: Any) -> Tensor:
        return (layer.act(asked + shown) if layer.act is not None else asked + shown) * sent

    def ends(o: Operations, x: Any) -> tuple[Any, Any, Any]:
        return o.linear(x, "lin_query"), o.linear(x, "lin_value"), o.linear(x, "lin_key")

    made = o.attend(x, ends, message=message, mean=False, bias="bias")
    return o.add(made, o.linear(x, "lin_skip")) if layer.root_weight else made


def _film(o: Operations, layer: pyg.FiLMConv, x: Any) -> Any:
    def modulated(rows: Tensor, film: Tensor) -> Tensor:
        shift, scale = film.chunk(2, dim=-1)
        return scale * rows + shift if layer.act is None else layer.act(scale * rows + shift)

    made = o.attend(
        x,
        lambda o, x: (None, o.linear(x, "lins.0"), o.linear(x, "films.0")),
        message=lambda _shown, sent, asked, _edge: modulated(sent, asked),
        mean=layer.aggr == "mean",
    )
    return o.add(o.rows(modulated, o.linear(x, "lin_skip"), o.linear(x, "film_skip")), made)


def _gen(o: Operations, layer: pyg.GENConv, x: Any) -> Any:
    """A softmax of each column of the messages themselves, times a temperature."""
    heat = layer.aggr_module.t if layer.aggr == "softmax" else 0.0
    learned = isinstance(heat, Tensor)

    def ends(o: Operations, x: Any) -> tuple[Any, Any, Any]:
        sent = o.linear(x, "lin_src") if hasattr(layer, "lin_src") else x
        sent = o.rows(lambda rows: rows.relu() + layer.eps, sent)
        names = ("aggr_module.t",) if learned else ()
        return o.rows(lambda rows, own=heat: own * rows, sent, weights=names), sent, None

    made = o.attend(
        x,
        ends,
        score=(lambda shown, _asked, _edge: shown.squeeze(-1)) if layer.aggr == "softmax" else None,
        heads=layer.out_channels,
        mean=layer.aggr in ("softmax", "mean"),
    )
    return o.module(o.add(made, o.linear(x, "lin_dst") if hasattr(layer, "lin_dst") else x), "mlp")


def _has_sums(layer: pyg.GENConv) -> bool:
    plain = adds(layer, "mean") or (layer.aggr == "softmax" and not layer.aggr_module.semi_grad)
    return plain and not hasattr(layer, "msg_norm") and not hasattr(layer, "lin_aggr_out")


def _has_one_film(layer: pyg.FiLMConv) -> bool:
    linear = type(layer.film_skip) is type(layer.lin_skip)
    return layer.num_relations == 1 and linear and is_elementwise(layer.act) and adds(layer, "mean")


def _known_fill(layer: Any) -> bool:
    return not layer.add_self_loops or layer.fill_value == "mean" or isinstance(layer.fill_value, float | int)


_FEATURES = ("edge_attr",)
for _one in (
    LayerType(
        convolution=pyg.GATConv,
        formula=_gat,
        can_toggle=lambda c: adds(c) and c.lin is not None and (c.lin_edge is None or _known_fill(c)),
        can_train=lambda c: adds(c) and c.lin is not None and c.lin_edge is None,
        edges=_FEATURES,
    ),
    LayerType(
        convolution=pyg.GATv2Conv,
        formula=_gatv2,
        can_toggle=lambda c: adds(c) and _known_fill(c) and isinstance(c.in_channels, int),
        can_train=lambda c: adds(c) and isinstance(c.in_channels, int) and c.lin_edge is None,
        edges=_FEATURES,
    ),
    LayerType(
        convolution=pyg.TransformerConv,
        formula=_transformer,
        can_toggle=lambda c: adds(c) and isinstance(c.in_channels, int),
        can_train=lambda c: adds(c) and isinstance(c.in_channels, int) and c.lin_edge is None,
        edges=_FEATURES,
    ),
    LayerType(convolution=pyg.SuperGATConv, formula=_supergat),
    LayerType(convolution=pyg.FAConv, formula=_fa, nodes=("x_0",), can_toggle=lambda c: adds(c) and c.normalize),
    LayerType(
        convolution=pyg.ResGatedGraphConv,
        formula=_res_gated,
        can_toggle=lambda c: adds(c) and c.edge_dim is None and is_elementwise(c.act),
    ),
    LayerType(convolution=pyg.FiLMConv, formula=_film, can_toggle=_has_one_film),
    LayerType(convolution=pyg.GENConv, formula=_gen, modules=("mlp",), can_toggle=_has_sums),
    LayerType(convolution=pyg.GINEConv, formula=_gine, edges=_FEATURES, modules=("nn",)),
):
    register_layer_type(_one)
