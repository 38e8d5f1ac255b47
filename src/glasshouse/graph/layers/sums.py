"""Layer types that add up neighbours' values, or take the largest."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GCNConv,
    GINConv,
    GraphConv,
    LGConv,
    SAGEConv,
    SGConv,
    SSGConv,
    TAGConv,
)

from glasshouse.graph.layers.layer_type import LayerType, Operations, adds, register_layer_type


def _gcn_norm(layer: Any, weight: Any) -> dict[str, Any]:
    """GCN's normalisation (``torch_geometric.nn.conv.gcn_conv.gcn_norm``) with a layer's options."""
    if not getattr(layer, "normalize", True):
        return {"weight": weight}
    loops = "added" if getattr(layer, "add_self_loops", False) else "listed"
    return {"norm": "symmetric", "loops": loops, "fill": 1.0 + getattr(layer, "improved", False), "weight": weight}


def _gcn(o: Operations, layer: GCNConv, x: Any, edge_weight: Any = None) -> Any:
    return o.sum(x, linear="lin", bias="bias", **_gcn_norm(layer, edge_weight))


def _lg(o: Operations, layer: LGConv, x: Any, edge_weight: Any = None) -> Any:
    return o.sum(x, **_gcn_norm(layer, edge_weight))


def _sgc(o: Operations, layer: SGConv, x: Any, edge_weight: Any = None) -> Any:
    """Averaging and the linear map commute: map first, so that the K averages have one column per class only."""
    norm = _gcn_norm(layer, edge_weight)
    for k in range(layer.K):
        first, last = k == 0, k == layer.K - 1
        x = o.sum(x, linear="lin" if first else None, bias="lin.bias" if last else None, **norm)
    return x


def _ssg(o: Operations, layer: SSGConv, x: Any, edge_weight: Any = None) -> Any:
    moved = [o.linear(x, "lin", bias=False)]
    for _ in range(layer.K):
        moved.append(o.sum(moved[-1], **_gcn_norm(layer, edge_weight)))
    return o.add(*moved, factors=(layer.alpha, *[(1 - layer.alpha) / layer.K] * layer.K), bias="lin.bias")


def _tag(o: Operations, layer: TAGConv, x: Any, edge_weight: Any = None) -> Any:
    """``x W0 + A (x W1 + A (x W2 + ...)) + bias``, so that messages are as wide as the result."""
    made = o.linear(x, f"lins.{layer.K}")
    for k in reversed(range(layer.K)):
        sums, own = o.sum(made, **_gcn_norm(layer, edge_weight)), o.linear(x, f"lins.{k}")
        made = o.add(sums, own, bias="bias" if k == 0 else None)
    return made


def _appnp(o: Operations, layer: APPNP, x: Any, edge_weight: Any = None) -> Any:
    made = x
    for _ in range(layer.K):
        made = o.add(o.sum(made, **_gcn_norm(layer, edge_weight)), x, factors=(1 - layer.alpha, layer.alpha))
    return made


def _cheb(o: Operations, layer: ChebConv, x: Any) -> Any:
    """Clenshaw's scheme: ``b_k = x W_k + 2 L b_(k+1) - b_(k+2)``, where L is the scaled Laplacian less I."""
    last = len(layer.lins) - 1
    made = o.linear(x, f"lins.{last}")
    before: list[Any] = []
    for k in reversed(range(last)):
        parts = [o.sum(made, norm="laplacian"), o.linear(x, f"lins.{k}"), *before]
        factors = (-2.0 if k else -1.0, 1.0, -1.0)[: len(parts)]
        made, before = o.add(*parts, factors=factors, bias="bias" if k == 0 else None), [made]
    return made if last else o.add(made, bias="bias")


def _graph_conv(o: Operations, layer: GraphConv, x: Any, edge_weight: Any = None) -> Any:
    maps = {"linear": "lin_rel", "bias": "lin_rel.bias", "root": "lin_root", "weight": edge_weight}
    return o.max(x, **maps) if layer.aggr == "max" else o.sum(x, norm=_mean(layer), **maps)


def _mean(layer: Any) -> Any:
    return "mean" if layer.aggr == "mean" else "none"


def _adds_or_more(layer: Any) -> bool:
    return layer.aggr in ("add", "sum", "mean", "max")


def _sage(o: Operations, layer: SAGEConv, x: Any) -> Any:
    sent, root = x, "lin_r" if layer.root_weight else None
    if layer.project:  # only what senders send is mapped first
        sent = o.rows(torch.relu, o.linear(x, "lin"))
    maps: dict[str, Any] = {"linear": "lin_l", "bias": "lin_l.bias", "root": None if layer.project else root}
    made = o.max(sent, **maps) if layer.aggr == "max" else o.sum(sent, norm=_mean(layer), sums_first=True, **maps)
    if layer.project and root:
        made = o.add(made, o.linear(x, root))
    return o.rows(_unit, made) if layer.normalize else made


def _unit(rows: Tensor) -> Tensor:
    return torch.nn.functional.normalize(rows, p=2.0, dim=-1)


def _gin(o: Operations, layer: GINConv, x: Any) -> Any:
    return o.module_of_sum(x, "nn", own="eps")


def _takes_steps(layer: Any) -> bool:
    return adds(layer) and layer.K > 0


_WEIGHT = ("edge_weight",)
for _one in (
    LayerType(convolution=GCNConv, formula=_gcn, edges=_WEIGHT),
    LayerType(convolution=LGConv, formula=_lg, edges=_WEIGHT),
    LayerType(convolution=SGConv, formula=_sgc, edges=_WEIGHT),
    LayerType(convolution=SSGConv, formula=_ssg, edges=_WEIGHT, can_toggle=_takes_steps, can_train=_takes_steps),
    LayerType(convolution=TAGConv, formula=_tag, edges=_WEIGHT),
    LayerType(
        convolution=APPNP,
        formula=_appnp,
        edges=_WEIGHT,
        can_toggle=_takes_steps,
        can_train=lambda c: adds(c) and c.dropout == 0,
    ),
    LayerType(
        convolution=ChebConv,
        formula=_cheb,
        can_toggle=lambda c: adds(c) and c.normalization == "sym",
        steps=lambda c: max(len(c.lins) - 1, 1),  # one linear map per power of the Laplacian, the first for power 0
        both_ways=True,
    ),
    LayerType(
        convolution=GraphConv, formula=_graph_conv, edges=_WEIGHT, can_toggle=_adds_or_more, can_train=_adds_or_more
    ),
    LayerType(convolution=SAGEConv, formula=_sage, can_toggle=_adds_or_more, can_train=_adds_or_more),
    LayerType(convolution=GINConv, formula=_gin, modules=("nn",)),
):
    register_layer_type(_one)
