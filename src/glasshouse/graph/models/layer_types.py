"""The convolutions whose inner steps are known: how several models are toggled row by row and trained in one pass.

A layer of another type works too. It is then measured, asked as a black box, and trained one model at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

__all__ = ["LAYER_TYPES", "LayerType", "register_layer_type"]


def _never(layer: Any) -> bool:
    return False


def _refuse(*_: Any) -> Any:
    raise TypeError("this layer type has no such form; ask can_toggle or can_batch first")


@dataclass(frozen=True, kw_only=True)
class LayerType:
    """What is known about one type of convolution; each form may be left out.

    Args:
        convolution: the class itself; subclasses are not included, since they may compute something else.
        can_toggle: whether the toggle engine understands a layer's options.
        toggled: the same layer of K models, as `glasshouse.graph.rule.toggle.layers.base.Layer` with all their weights;
            one per step of message passing.
        options: attributes that must be equal for two layers to be toggled together, beyond shapes and ``repr``.
        can_batch: whether batched training understands a layer's options.
        batched: a layer on the graphs of K models (`glasshouse.graph.training.batched.graphs.BatchedGraph`), as
            `glasshouse.graph.training.batched.layers.Layer`.

    Example:
        >>> from torch_geometric.nn import GraphConv
        >>> LayerType(convolution=GraphConv).can_toggle(GraphConv(2, 2))
        False
    """

    convolution: type[nn.Module]
    can_toggle: Callable[[Any], bool] = _never
    toggled: Callable[[Sequence[Any]], list[Any]] = _refuse
    options: tuple[str, ...] = ()
    can_batch: Callable[[Any], bool] = _never
    batched: Callable[[Any, Any], Any] = _refuse


LAYER_TYPES: dict[type[nn.Module], LayerType] = {}


def register_layer_type(layer_type: LayerType) -> None:
    """Make a layer type known; a second one for the same class replaces the first.

    How far such a layer sees is then read off the layer (`glasshouse.graph.programs.reach.counted_layers`), not measured.

    Example:
        >>> from torch_geometric.nn import GraphConv
        >>> register_layer_type(LayerType(convolution=GraphConv))
        >>> GraphConv in LAYER_TYPES
        True
        >>> _ = LAYER_TYPES.pop(GraphConv)
    """
    LAYER_TYPES[layer_type.convolution] = layer_type
