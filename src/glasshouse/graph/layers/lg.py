"""LGConv: one sum of neighbours, without weights of its own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import LGConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.rule.toggle.pieces import spread, spread_options

__all__: list[str] = []


def _toggled(layers: Sequence[LGConv], build: Builder, x: Slot, *, edge_weight: Tensor | None = None) -> Slot | None:
    options = spread_options(layers[0], edge_weight)
    return None if options is None else spread(build, x, **options)


register_layer_type(
    LayerType(
        convolution=LGConv,
        can_toggle=lambda c: c.aggr in ("add", "sum"),
        toggled=_toggled,
        arguments=("edge_weight",),
    )
)
