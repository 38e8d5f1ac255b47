"""Layers of several sums in a row: TAGConv, APPNP, SSGConv, LGConv and ChebConv.

Sums of neighbours and linear maps commute, so maps come first where they make rows narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch_geometric.nn import APPNP, ChebConv, LGConv, SSGConv, TAGConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.layers.weights import batched_vectors
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.rule.toggle.pieces import added, gcn_options, mapped, shared_weight, spread

__all__: list[str] = []


def _options(layer: Any, edge_weight: Tensor | None) -> dict[str, Any] | None:
    """How a layer scales messages; None if each model has its own weights of edges."""
    if not shared_weight(edge_weight):
        return None
    edges = None if edge_weight is None else edge_weight[:, 0]
    normalize = getattr(layer, "normalize", True)
    loops = getattr(layer, "add_self_loops", False)
    return gcn_options(normalize=normalize, loops=loops, improved=False, edge_weight=edges)


def _tag(layers: Sequence[TAGConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    """``x W0 + A (x W1 + A (x W2 + ...)) + bias``."""
    options = _options(layers[0], edge_weight)
    if options is None:
        return None
    powers = len(layers[0].lins)
    bias = batched_vectors([layer.bias for layer in layers])
    made = mapped(build, x, [layer.lins[powers - 1] for layer in layers])
    for power in reversed(range(powers - 1)):
        own = mapped(build, x, [layer.lins[power] for layer in layers])
        made = added(build, spread(build, made, **options), own, bias=bias if power == 0 else None)
    return made


def _appnp(layers: Sequence[APPNP], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    options = _options(layers[0], edge_weight)
    if options is None:
        return None
    made, alpha = x, layers[0].alpha
    for _ in range(layers[0].K):
        made = added(build, spread(build, made, **options), x, factors=(1 - alpha, alpha))
    return made


def _ssg(layers: Sequence[SSGConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    options, steps, alpha = _options(layers[0], edge_weight), layers[0].K, layers[0].alpha
    if options is None:
        return None
    bias = batched_vectors([layer.lin.bias for layer in layers])
    own = mapped(build, x, [_Unbiased(layer.lin) for layer in layers])  # type: ignore[misc]
    moved = [own]
    for _ in range(steps):
        moved.append(spread(build, moved[-1], **options))
    return added(build, *moved, factors=(alpha, *[(1 - alpha) / steps] * steps), bias=bias)


class _Unbiased:
    """A linear map without its bias."""

    def __init__(self, linear: Any) -> None:
        self.weight, self.bias = linear.weight, None


def _lg(layers: Sequence[LGConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    options = _options(layers[0], edge_weight)
    return None if options is None else spread(build, x, **options)


def _cheb(layers: Sequence[ChebConv], build: Builder, x: Slot) -> Slot:
    """Clenshaw's scheme: ``b_k = x W_k + 2 P b_(k+1) - b_(k+2)``, with ``P = -D^(-1/2) A D^(-1/2)``.

    The largest entry of the Laplacian is always 1, which PyTorch Geometric scales it by. D holds out-degrees, which are
    the degrees where all edges go both ways.
    """
    powers = len(layers[0].lins)
    bias = batched_vectors([layer.bias for layer in layers])
    before, made = None, mapped(build, x, [layer.lins[powers - 1] for layer in layers])
    for power in reversed(range(powers - 1)):
        own = mapped(build, x, [layer.lins[power] for layer in layers])
        sums = spread(build, made, normalisation="symmetric", loops="dropped")
        parts, factors = [sums, own], [-1.0 if power == 0 else -2.0, 1.0]
        if before is not None:
            parts, factors = [*parts, before], [*factors, -1.0]
        before, made = made, added(build, *parts, factors=factors, bias=bias if power == 0 else None)
    return made if powers > 1 or bias is None else added(build, made, bias=bias)


for _kind, _toggled in ((TAGConv, _tag), (APPNP, _appnp), (SSGConv, _ssg), (LGConv, _lg)):
    register_layer_type(
        LayerType(
            convolution=_kind,
            can_toggle=lambda c: (
                c.aggr in ("add", "sum") and not getattr(c, "cached", False) and getattr(c, "K", 1) > 0
            ),
            toggled=_toggled,
            arguments=("edge_weight",),
        )
    )

register_layer_type(
    LayerType(
        convolution=ChebConv,
        can_toggle=lambda c: c.aggr in ("add", "sum") and c.normalization == "sym",
        toggled=_cheb,
        both_ways=True,
    )
)
