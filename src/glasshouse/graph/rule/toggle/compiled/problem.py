"""Stacked models on one graph, and whether the kernels can take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from glasshouse.errors import InputError
from glasshouse.graph.rule.toggle.compiled.architecture import ARCHITECTURES, SELF_LOOPS_MATTER
from glasshouse.graph.rule.toggle.compiled.plan import Graph, has_self_loops, is_simple, whole_graph
from glasshouse.graph.rule.toggle.compiled.reduction import reduced
from glasshouse.graph.rule.toggle.compiled.workers import available_cores

__all__ = ["Problem", "build_problem", "supports"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Stacked models on one graph, ready for kernels.

    Attributes:
        graph: all edges, no members.
        weights: the architecture's named tuple of stacked weights.
        models: how many are stacked.
        architecture: the module that knows how to fill and toggle rows.
    """

    graph: Graph
    weights: Any
    models: int
    architecture: ModuleType

    def new_state(self) -> Any:
        """Rows for one mask."""
        return self.architecture.new_state(self.weights, self.models)

    def new_scratch(self) -> Any:
        """Working space for one thread."""
        return self.architecture.new_scratch(self.weights, self.models)


def _architecture(layers: Sequence[Any]) -> ModuleType | None:
    for architecture in ARCHITECTURES:
        if architecture.supports(layers):
            return architecture
    return None


def _shape(layers: Sequence[nn.Module]) -> list[object]:
    """What must agree for models to be stacked."""
    shapes = [(name, tuple(value.shape)) for layer in layers for name, value in layer.state_dict().items()]
    return [*shapes, *(getattr(layer, "negative_slope", None) for layer in layers)]


def supports(models: Sequence[object], data: Data, hops: str = "model") -> bool:
    """Whether the kernels can do it: models that reduce to two layers of one shape in float32, a plain symmetric graph.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> one_way = Data(x=torch.zeros(2, 3), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(2))
        >>> supports([build_gnn("gcn", features=3, hidden=4, classes=2)], one_way)
        False
    """
    found = [reduced(model) for model in models]
    known = [layers for layers in found if layers is not None]
    architecture = _architecture(known[0]) if known and len(known) == len(found) else None
    return (
        architecture is not None
        and hops in ("model", "affected")
        and all(_architecture(layers) is architecture and _shape(layers) == _shape(known[0]) for layers in known)
        and all(_in_single(parameter) for layers in known for layer in layers for parameter in layer.parameters())
        and bool(data.edge_index.device.type == "cpu")
        and bool(data.x.is_floating_point() and data.x.shape[1] > 0)
        and is_simple(data)
        and not (architecture in SELF_LOOPS_MATTER and has_self_loops(data))
    )


def _in_single(parameter: torch.Tensor) -> bool:
    return parameter.device.type == "cpu" and parameter.dtype == torch.float32


def build_problem(models: Sequence[Any], data: Data, *, threads: int | None = None) -> Problem:
    """Stack the models and read the graph; ask ``supports`` first."""
    layers = [found for model in models if (found := reduced(model)) is not None]
    architecture = _architecture(layers[0]) if layers and len(layers) == len(models) else None
    if architecture is None:
        raise InputError("These models have no compiled kernels; ask supports() first.")
    graph = whole_graph(data)
    x = np.ascontiguousarray(data.x.numpy(), dtype=np.float32)
    weights = architecture.prepare(layers, x, graph, threads=threads or available_cores())
    last_class = layers[0][-1].out_channels - 1
    # The label of a node that has none is never used, but a kernel must be able to look it up.
    graph = graph._replace(label=np.clip(graph.label, 0, last_class))
    return Problem(graph=graph, weights=weights, models=len(models), architecture=architecture)
