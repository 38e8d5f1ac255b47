"""The convolutions whose inner steps are known: how several models are toggled row by row and trained in one pass.

A layer of another type works too: it is measured, and then asked itself about the rows that change.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from glasshouse.graph.programs.program import MessageStep, Value
from glasshouse.graph.programs.reach import counted_layers


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
        toggled: adds the same layer of K models to a `glasshouse.graph.rule.incremental.program.Builder`: called with
            the layers, the builder and the value that the layer reads, it returns the value that it makes, or None
            if it does not understand the edge values; the layer itself is then asked.
        arguments: names of parameters with edge values that ``toggled`` understands beside ``x`` and ``edge_index``;
            it gets them by name, [edges, 1, ...], or [edges, models, ...] if each model computes its own.
        both_ways: whether it uses out-degrees, so that it is exact only where all edges go both ways.
        can_batch: whether batched training understands a layer's options.
        batched: a layer on the graphs of K models (`glasshouse.graph.training.many.graph.BatchedGraph`), as
            `glasshouse.graph.training.many.layers.Layer`.
        batched_arguments: names of parameters with one number per edge that ``batched`` understands; it gets those of
            all graphs by name, [edges].

    Example:
        >>> from torch_geometric.nn import ClusterGCNConv
        >>> LayerType(convolution=ClusterGCNConv).can_toggle(ClusterGCNConv(2, 2))
        False
    """

    convolution: type[nn.Module]
    can_toggle: Callable[[Any], bool] = _never
    toggled: Callable[..., Any] = _refuse
    arguments: tuple[str, ...] = ()
    both_ways: bool = False
    can_batch: Callable[[Any], bool] = _never
    batched: Callable[..., Any] = _refuse
    batched_arguments: tuple[str, ...] = ()

    @property
    def trains(self) -> bool:
        """Whether it has a form for batched training."""
        return self.batched is not _refuse

    def understands(self, layer: Any, given: Mapping[str, Any]) -> bool:
        """Whether a layer that is called with these arguments can be toggled in the form of its type."""
        plain = given.keys() <= {"x", "edge_index", *self.arguments}
        plain = plain and all(isinstance(value, Value) for value in given.values()) and "x" in given
        plain = plain and layer.flow == "source_to_target" and not is_altered(layer)
        return plain and bool(self.can_toggle(layer))


_METHODS = ("forward", "message", "aggregate", "update", "propagate", "message_and_aggregate", "edge_update")

LAYER_TYPES: dict[type[nn.Module], LayerType] = {}


def register_layer_type(layer_type: LayerType) -> None:
    """Make a layer type known; a second one for the same class replaces the first.

    How far such a layer sees is then counted (`glasshouse.graph.programs.reach.counted_layers`), not measured.

    Example:
        >>> from torch_geometric.nn import ClusterGCNConv
        >>> register_layer_type(LayerType(convolution=ClusterGCNConv))
        >>> ClusterGCNConv in LAYER_TYPES
        True
        >>> _ = LAYER_TYPES.pop(ClusterGCNConv)
    """
    LAYER_TYPES[layer_type.convolution] = layer_type


def is_altered(layer: nn.Module) -> bool:
    """Whether a layer of a known class does something else: it has hooks, or methods of its own put in place of others.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> layer = GCNConv(3, 2)
        >>> _ = layer.register_forward_hook(lambda layer, given, made: 2 * made)
        >>> is_altered(layer)
        True
    """
    return any(
        ("forward" in name and name.endswith("hooks") and bool(value)) or (name in _METHODS and callable(value))
        for part in layer.modules()
        for name, value in vars(part).items()
    )


def arguments_of(layer: nn.Module, step: MessageStep) -> dict[str, Any]:
    """The arguments of a recorded call by the names of the layer's parameters, without those that are None.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> from glasshouse.graph.programs.trace import traced
        >>> layer = GCNConv(3, 2)
        >>> sorted(arguments_of(layer, traced(layer).messages[0]))
        ['edge_index', 'x']
    """
    kind: Any = type(layer)
    try:
        bound = _parameters(kind).bind(layer, *step.args, **step.kwargs)
    except TypeError:  # the layer itself will say what is wrong
        return dict(step.kwargs)
    given = list(bound.arguments.items())[1:]  # without the layer itself
    return {name: value for name, value in given if value is not None}


@functools.cache
def _parameters(kind: Any) -> inspect.Signature:
    return inspect.signature(kind.forward)


def counted_step(layer: nn.Module, step: MessageStep) -> MessageStep | None:
    """A call of a layer whose type is known, with its number of steps; None for a layer that has to be measured.

    Example:
        >>> from torch_geometric.nn import ClusterGCNConv
        >>> from glasshouse.graph.programs.trace import traced
        >>> layer = ClusterGCNConv(3, 2)
        >>> counted_step(layer, traced(layer).messages[0]) is None  # its type is not registered
        True
    """
    kind = LAYER_TYPES.get(type(layer))
    if kind is None or not kind.understands(layer, arguments_of(layer, step)):
        return None
    return replace(step, hops=counted_layers(layer), both_ways=kind.both_ways)
