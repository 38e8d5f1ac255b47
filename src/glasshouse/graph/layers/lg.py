"""LGConv: one sum of neighbours, without weights of its own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.nn import LGConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.operations import spread, spread_options
from glasshouse.graph.rule.incremental.program import Builder, Slot

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
