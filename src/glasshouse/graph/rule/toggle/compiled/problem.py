"""Stacked models on one graph, and whether the kernels can take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.errors import InputError
from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.rule.toggle.compiled.architecture import ARCHITECTURES, SELF_LOOPS_MATTER
from glasshouse.graph.rule.toggle.compiled.plan import Graph, has_self_loops, is_simple, whole_graph
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


def _architecture(model: object) -> ModuleType | None:
    if type(model) is not GNN or len(model.convolutions) != 2:
        return None
    for architecture in ARCHITECTURES:
        if architecture.supports(list(model.convolutions)):
            return architecture
    return None


def _shapes(model: GNN) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, tuple(value.shape)) for name, value in model.state_dict().items()]


def _slopes(model: GNN) -> list[float | None]:
    return [getattr(layer, "negative_slope", None) for layer in model.convolutions]


def supports(models: Sequence[object], data: Data, hops: str = "model") -> bool:
    """Whether the kernels can do it: 2-layer GNNs of one architecture and shape in float32, a plain symmetric graph.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> one_way = Data(x=torch.zeros(2, 3), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(2))
        >>> supports([build_gnn("gcn", features=3, hidden=4, classes=2)], one_way)
        False
    """
    architecture = _architecture(models[0]) if models else None
    if architecture is None or hops not in ("model", "affected"):
        return False
    known = [m for m in models if isinstance(m, GNN) and _architecture(m) is architecture]
    return (
        len(known) == len(models)
        and all(_shapes(m) == _shapes(known[0]) and _slopes(m) == _slopes(known[0]) for m in known)
        and all(p.device.type == "cpu" and p.dtype == torch.float32 for m in known for p in m.parameters())
        and bool(data.edge_index.device.type == "cpu")
        and bool(data.x.is_floating_point() and data.x.shape[1] > 0)
        and is_simple(data)
        and not (architecture in SELF_LOOPS_MATTER and has_self_loops(data))
    )


def build_problem(models: Sequence[GNN], data: Data, *, threads: int | None = None) -> Problem:
    """Stack the models and read the graph; ask ``supports`` first."""
    architecture = _architecture(models[0])
    if architecture is None:
        raise InputError("These models have no compiled kernels; ask supports() first.")
    graph = whole_graph(data)
    x = np.ascontiguousarray(data.x.numpy(), dtype=np.float32)
    layers: list[list[Any]] = [list(model.convolutions) for model in models]
    weights = architecture.prepare(layers, x, graph, threads=threads or available_cores())
    last_class = layers[0][-1].out_channels - 1
    # The label of a node that has none is never used, but a kernel must be able to look it up.
    graph = graph._replace(label=np.clip(graph.label, 0, last_class))
    return Problem(graph=graph, weights=weights, models=len(models), architecture=architecture)
