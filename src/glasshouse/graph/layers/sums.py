"""Layer types that add up neighbours' values, or take the largest."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch_geometric import nn as pyg

from glasshouse.graph.layers.layer_type import (
    LayerType,
    NotDescribed,
    Operations,
    adds,
    is_elementwise,
    register_layer_type,
)


def _gcn_norm(layer: Any, weight: Any) -> dict[str, Any]:
    """GCN's normalisation (``torch_geometric.nn.conv.gcn_conv.gcn_norm``) with a layer's options."""
    if not getattr(layer, "normalize", True):
        return {"weight": weight}
    loops = "added" if getattr(layer, "add_self_loops", False) else "listed"
    return {"norm": "symmetric", "loops": loops, "fill": 1.0 + getattr(layer, "improved", False), "weight": weight}


def _gcn(o: Operations, layer: pyg.GCNConv, x: Any, edge_weight: Any = None) -> Any:
    return o.sum(x, linear="lin", bias="bias", **_gcn_norm(layer, edge_weight))


def _lg(o: Operations, layer: pyg.LGConv, x: Any, edge_weight: Any = None) -> Any:
    return o.sum(x, **_gcn_norm(layer, edge_weight))


def _sgc(o: Operations, layer: pyg.SGConv, x: Any, edge_weight: Any = None) -> Any:
    """Averaging and the linear map commute: map first, so that the K averages have one column per class only."""
    norm = _gcn_norm(layer, edge_weight)
    for k in range(layer.K):
        first, last = k == 0, k == layer.K - 1
        x = o.sum(x, linear="lin" if first else None, bias="lin.bias" if last else None, **norm)
    return x


def _ssg(o: Operations, layer: pyg.SSGConv, x: Any, edge_weight: Any = None) -> Any:
    moved = [o.linear(x, "lin", bias=False)]
    for _ in range(layer.K):
        moved.append(o.sum(moved[-1], **_gcn_norm(layer, edge_weight)))
    return o.add(*moved, factors=(layer.alpha, *[(1 - layer.alpha) / layer.K] * layer.K), bias="lin.bias")


def _tag(o: Operations, layer: pyg.TAGConv, x: Any, edge_weight: Any = None) -> Any:
    """``x W0 + A (x W1 + A (x W2 + ...)) + bias``, so that messages are as wide as the result."""
    made = o.linear(x, f"lins.{layer.K}")
    for k in reversed(range(layer.K)):
        sums, own = o.sum(made, **_gcn_norm(layer, edge_weight)), o.linear(x, f"lins.{k}")
        made = o.add(sums, own, bias="bias" if k == 0 else None)
    return made


def _appnp(o: Operations, layer: pyg.APPNP, x: Any, edge_weight: Any = None) -> Any:
    made = x
    for _ in range(layer.K):
        made = o.add(o.sum(made, **_gcn_norm(layer, edge_weight)), x, factors=(1 - layer.alpha, layer.alpha))
    return made


def _cheb(o: Operations, layer: pyg.ChebConv, x: Any) -> Any:
    """Clenshaw's scheme: ``b_k = x W_k + 2 L b_(k+1) - b_(k+2)``, where L is the scaled Laplacian less I."""
    last = len(layer.lins) - 1
    made = o.linear(x, f"lins.{last}")
    before: list[Any] = []
    for k in reversed(range(last)):
        parts = [o.sum(made, norm="laplacian"), o.linear(x, f"lins.{k}"), *before]
        factors = (-2.0 if k else -1.0, 1.0, -1.0)[: len(parts)]
        made, before = o.add(*parts, factors=factors, bias="bias" if k == 0 else None), [made]
    return made if last else o.add(made, bias="bias")


def _graph_conv(o: Operations, layer: pyg.GraphConv, x: Any, edge_weight: Any = None) -> Any:
    maps = {"linear": "lin_rel", "bias": "lin_rel.bias", "root": "lin_root", "weight": edge_weight}
    return o.max(x, **maps) if layer.aggr == "max" else o.sum(x, norm=_mean(layer), **maps)


def _simple(o: Operations, layer: pyg.SimpleConv, x: Any, edge_weight: Any = None) -> Any:
    return o.sum(x, norm=_mean(layer), weight=edge_weight)


def _mean(layer: Any) -> Any:
    return "mean" if layer.aggr == "mean" else "none"


def _adds_or_more(layer: Any) -> bool:
    return adds(layer, "mean", "max")


def _sage(o: Operations, layer: pyg.SAGEConv, x: Any) -> Any:
    sent, root = x, "lin_r" if layer.root_weight else None
    if layer.project:  # only what senders send is mapped first
        sent = o.rows(torch.relu, o.linear(x, "lin"))
    maps: dict[str, Any] = {"linear": "lin_l", "bias": "lin_l.bias", "root": None if layer.project else root}
    made = o.max(sent, **maps) if layer.aggr == "max" else o.sum(sent, norm=_mean(layer), sums_first=True, **maps)
    if layer.project and root:
        made = o.add(made, o.linear(x, root))
    return o.rows(lambda rows: normalize(rows, p=2.0, dim=-1), made) if layer.normalize else made


def _gin(o: Operations, layer: pyg.GINConv, x: Any) -> Any:
    return o.module_of_sum(x, "nn", own="eps")


def _gcn2(o: Operations, layer: pyg.GCN2Conv, x: Any, x_0: Any, edge_weight: Any = None) -> Any:
    sums, alpha, beta = o.sum(x, **_gcn_norm(layer, edge_weight)), layer.alpha, layer.beta
    if layer.weight2 is None:
        both = o.add(sums, x_0, factors=(1 - alpha, alpha))
        return o.add(both, o.linear(both, "weight1"), factors=(1 - beta, beta))
    parts = (sums, o.linear(sums, "weight1"), x_0, o.linear(x_0, "weight2"))
    return o.add(*parts, factors=[share * part for share in (1 - alpha, alpha) for part in (1 - beta, beta)])


def _arma(o: Operations, layer: pyg.ARMAConv, x: Any, edge_weight: Any = None) -> Any:
    stacks = []
    for k in range(layer.num_stacks):
        made = x
        for t in range(layer.num_layers):
            now, before = (0, 0) if layer.shared_weights else (t, t - 1)
            maps = f"weight.{before}.{k}" if t else f"init_weight.{k}"
            sums = o.sum(made, linear=maps, norm="symmetric", weight=edge_weight)
            made = o.add(sums, o.linear(x, f"root_weight.{now}.{k}"), bias=f"bias.{now}.{k}")
            made = made if layer.act is None else o.rows(layer.act, made)
        stacks.append(made)
    return o.add(*stacks, factors=[1 / layer.num_stacks] * layer.num_stacks)


def _cluster_gcn(o: Operations, layer: pyg.ClusterGCNConv, x: Any) -> Any:
    maps: dict[str, Any] = {"linear": "lin_out", "bias": "lin_out.bias", "root": "lin_root"}
    return o.sum(x, norm="mean", loops="added", own=1 + layer.diag_lambda, **maps)


def degree(o: Operations, x: Any, **how: Any) -> Any:
    """The number of messages of each node, or the sum of their weights; options as of `Operations.sum`."""
    return o.sum(o.rows(lambda rows: torch.ones_like(rows[..., :1]), x), **how)


def _le(o: Operations, layer: pyg.LEConv, x: Any, edge_weight: Any = None) -> Any:
    """The sum of ``w (a_j - b_i)`` is that of ``w a_j`` less the weights' sum times ``b_i``."""
    sums, weights = o.sum(o.linear(x, "lin1"), weight=edge_weight), degree(o, x, weight=edge_weight)
    parts = (sums, weights, o.linear(x, "lin2"), o.linear(x, "lin3"))
    return o.rows(lambda sums, weights, less, own: sums - weights * less + own, *parts)


def _mf(o: Operations, layer: pyg.MFConv, x: Any) -> Any:
    sums, count = o.sum(x), degree(o, x)
    made = [o.add(o.linear(sums, f"lins_l.{k}"), o.linear(x, f"lins_r.{k}")) for k in range(layer.max_degree + 1)]
    return o.rows(_chosen, count, *made)


def _chosen(count: Tensor, *made: Tensor) -> Tensor:
    """The result for a node's degree."""
    place, found = count.round().clamp(max=len(made) - 1), made[0]
    for k, rows in enumerate(made):
        found = torch.where(place == k, rows, found)
    return found


def _rgcn(o: Operations, layer: pyg.RGCNConv, x: Any, edge_type: Any = None) -> Any:
    if edge_type is None:
        raise NotDescribed
    own = [] if layer.root is None else [o.linear(x, "root")]
    how = {"norm": _mean(layer), "weight": edge_type}
    kinds = range(layer.num_relations)
    return o.add(*own, *[o.sum(x, linear=f"weight.{kind}", only=kind, **how) for kind in kinds], bias="bias")


_WEIGHT = ("edge_weight",)
for _one in (
    LayerType(convolution=pyg.GCNConv, formula=_gcn, edges=_WEIGHT),
    LayerType(convolution=pyg.LGConv, formula=_lg, edges=_WEIGHT),
    LayerType(convolution=pyg.SGConv, formula=_sgc, edges=_WEIGHT),
    LayerType(convolution=pyg.SSGConv, formula=_ssg, edges=_WEIGHT, can_toggle=lambda c: adds(c) and c.K > 0),
    LayerType(convolution=pyg.TAGConv, formula=_tag, edges=_WEIGHT),
    LayerType(
        convolution=pyg.APPNP,
        formula=_appnp,
        edges=_WEIGHT,
        can_toggle=lambda c: adds(c) and c.K > 0,
        can_train=lambda c: adds(c) and c.dropout == 0,
    ),
    LayerType(
        convolution=pyg.ChebConv,
        formula=_cheb,
        can_toggle=lambda c: adds(c) and c.normalization == "sym",
        can_train=adds,
        steps=lambda c: max(len(c.lins) - 1, 1),  # one linear map per power of the Laplacian, the first for power 0
        both_ways=True,
    ),
    LayerType(
        convolution=pyg.GraphConv, formula=_graph_conv, edges=_WEIGHT, can_toggle=lambda c: adds(c, "mean", "max")
    ),
    LayerType(
        convolution=pyg.SimpleConv,
        formula=_simple,
        edges=_WEIGHT,
        can_toggle=lambda c: adds(c, "mean") and c.combine_root is None,
    ),
    LayerType(convolution=pyg.SAGEConv, formula=_sage, can_toggle=_adds_or_more),
    LayerType(convolution=pyg.GINConv, formula=_gin, modules=("nn",)),
    LayerType(convolution=pyg.GCN2Conv, formula=_gcn2, nodes=("x_0",), edges=_WEIGHT),
    LayerType(
        convolution=pyg.ARMAConv,
        formula=_arma,
        edges=_WEIGHT,
        can_toggle=lambda c: adds(c) and is_elementwise(c.act),
        can_train=lambda c: adds(c) and is_elementwise(c.act) and c.dropout == 0,
    ),
    LayerType(convolution=pyg.ClusterGCNConv, formula=_cluster_gcn, can_toggle=lambda c: adds(c) and c.add_self_loops),
    LayerType(convolution=pyg.LEConv, formula=_le, edges=_WEIGHT),
    LayerType(convolution=pyg.MFConv, formula=_mf),
    LayerType(
        convolution=pyg.RGCNConv,
        formula=_rgcn,
        edges=("edge_type",),
        can_toggle=lambda c: adds(c, "mean") and c.num_bases is None and c.num_blocks is None,
    ),
):
    register_layer_type(_one)
