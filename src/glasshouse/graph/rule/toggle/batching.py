"""From models of the same shape to stacked layers, by the layer types of their convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from torch import nn

from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.models.layer_types import LAYER_TYPES
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.toggle.layers.base import Layer

__all__ = ["LayerStep", "batch_layers", "by_shape", "can_batch", "shape_of"]


@dataclass(frozen=True, kw_only=True)
class LayerStep:
    """A stacked layer, and whether a ReLU follows it.

    Example:
        >>> import torch
        >>> from glasshouse.graph.rule.toggle.layers.maximum import Maximum
        >>> LayerStep(layer=Maximum(weight=torch.ones(1, 2, 3), root=None, bias=None), relu=False).relu
        False
    """

    layer: Layer
    relu: bool


def can_batch(model: Model) -> bool:
    """Whether a model is our GNN of convolutions that can be toggled row by row.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> can_batch(build_gnn("gin", features=2, hidden=4, classes=2)), can_batch(lambda x, edge_index: x)
        (True, False)
    """
    if type(model) is not GNN:  # a subclass may compute something else
        return False
    return all(
        type(layer) in LAYER_TYPES and LAYER_TYPES[type(layer)].can_toggle(layer) and layer.flow == "source_to_target"
        for layer in model.convolutions
    )


def shape_of(model: Model) -> tuple[object, ...]:
    """What must agree for two models to share one stack: layer types, options and shapes.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> shape_of(build_gnn("gcn", features=2, hidden=4, classes=2))[0]
        'GCNConv(2, 4)'
    """
    if not can_batch(model):
        manners = manners_of(model)
        return ("black box", manners.hops, manners.everywhere)
    module = cast("nn.Module", model)
    shapes = [(name, tuple(value.shape), value.dtype) for name, value in module.state_dict().items()]
    layers = list(cast("GNN", model).convolutions)
    options = [getattr(layer, name) for layer in layers for name in LAYER_TYPES[type(layer)].options]
    return (*[repr(layer) for layer in layers], *options, *shapes)


def by_shape(models: Sequence[Model]) -> list[list[int]]:
    """The places of the models in groups of one shape, in the order in which the shapes first appear.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> by_shape([build_gnn(name, features=2, hidden=4, classes=2) for name in ("gcn", "gat", "gcn")])
        [[0, 2], [1]]
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, model in enumerate(models):
        groups.setdefault(shape_of(model), []).append(place)
    return list(groups.values())


def batch_layers(models: Sequence[Model]) -> list[LayerStep]:
    """The layers of models of one shape, weights stacked, detached and on the models' device.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> len(batch_layers([build_gnn("sgc", features=2, hidden=4, classes=2, layers=3) for _ in range(2)]))
        3
    """
    columns = list(zip(*[cast("GNN", model).convolutions for model in models], strict=True))
    stages: list[LayerStep] = []
    for number, column in enumerate(columns, start=1):
        *before, last = LAYER_TYPES[type(column[0])].toggled(column)
        stages += [LayerStep(layer=layer, relu=False) for layer in before]
        stages.append(LayerStep(layer=last, relu=number < len(columns)))
    return stages
