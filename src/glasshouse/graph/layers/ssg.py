"""SSGConv: the average of several sums in a row, and one linear map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch_geometric.nn import SSGConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.operations import added, batched_vectors, mapped, spread, spread_options
from glasshouse.graph.rule.incremental.program import Builder, Slot

__all__: list[str] = []


def _toggled(layers: Sequence[SSGConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    options, steps, alpha = spread_options(layers[0], edge_weight), layers[0].K, layers[0].alpha
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


register_layer_type(
    LayerType(
        convolution=SSGConv,
        can_toggle=lambda c: c.aggr in ("add", "sum") and not c.cached and c.K > 0,
        toggled=_toggled,
        arguments=("edge_weight",),
    )
)
