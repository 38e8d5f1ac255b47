"""GINE's convolution: a sum of messages made from senders and edges, then a perceptron."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import GINEConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.layer import EdgeValues
from glasshouse.graph.rule.incremental.operations import edge_features, perceptron
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.rule.incremental.sum import EdgeSum

__all__: list[str] = []


def _toggled(layers: Sequence[GINEConv], build: Builder, x: Slot, *, edge_attr: Tensor | None = None) -> Slot | None:
    if edge_attr is None or edge_attr.ndim != 3:
        return None
    lines = [layer.lin for layer in layers]
    edges = EdgeValues(values=edge_attr.to(build.dtype)) if lines[0] is None else edge_features(lines, edge_attr)
    shared = x.shared and lines[0] is None and edge_attr.shape[1] == 1
    models = 1 if shared else build.models
    layer = EdgeSum(edges=edges, message=_message, models=models, width=x.width, item=x.sample.element_size())
    return perceptron(build, build.message(layer, x, shared=shared), x, layers)


def _message(sent: Tensor, edge: Tensor) -> Tensor:
    return torch.relu(sent + edge)


register_layer_type(
    LayerType(
        convolution=GINEConv,
        can_toggle=lambda c: c.aggr in ("add", "sum"),
        toggled=_toggled,
        arguments=("edge_attr",),
    )
)
