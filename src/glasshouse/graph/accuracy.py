"""How often a GNN is right about some nodes."""

from __future__ import annotations

from torch_geometric.data import Data

from glasshouse.graph.question import Model, model_device
from glasshouse.graph.reference import quiet
from glasshouse.graph.trainer import induced
from glasshouse.population import BoolArray

__all__ = ["induced_accuracy"]


def induced_accuracy(model: Model, data: Data, nodes: BoolArray) -> float:
    """Accuracy on the graph induced by the given nodes, as in the inductive setting; NaN where there are none.

    Members are asked on the graph they trained on, the others on a graph that no member is part of.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> data = Data(x=torch.eye(2), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0, 0]))
        >>> induced_accuracy(lambda x, edge_index: x, data, np.array([True, True]))
        0.5
    """
    if not nodes.any():
        return float("nan")
    graph = induced(data, nodes, device=model_device([model]) or "cpu")
    with quiet([model]):
        right = model(graph.x, graph.edge_index).argmax(dim=-1) == graph.y
    return float(right.double().mean())
