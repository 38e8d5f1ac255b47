"""How often a GNN is right about some nodes."""

from __future__ import annotations

import numpy as np
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, IntArray
from glasshouse.graph.data.induced import induced
from glasshouse.graph.models.asking import ask_model, quiet
from glasshouse.graph.models.model import Model, model_device
from glasshouse.graph.training.setting import Setting

__all__ = ["node_accuracy", "node_choices"]


def node_accuracy(model: Model, data: Data, nodes: BoolArray, *, setting: Setting = "inductive") -> float:
    """Accuracy on some nodes; NaN if there are none.

    Args:
        model: to ask.
        data: the graph.
        nodes: [n] which nodes are counted.
        setting: if inductive, the model is asked about the graph that these nodes induce: members as in training,
            others without any member. If transductive, it is asked about the whole graph.

    Example:
        >>> import torch
        >>> data = Data(x=torch.eye(2), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0, 0]))
        >>> node_accuracy(lambda x, edge_index: x, data, np.array([True, True]))
        0.5
    """
    if not nodes.any():
        return float("nan")
    return float((node_choices(model, data, nodes, setting=setting) == data.y.cpu().numpy()[nodes]).mean())


def node_choices(model: Model, data: Data, nodes: BoolArray, *, setting: Setting = "inductive") -> IntArray:
    """The class that a model takes for the most likely one, of each of some nodes; arguments as in `node_accuracy`.

    Example:
        >>> import torch
        >>> data = Data(x=torch.eye(2), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0, 0]))
        >>> node_choices(lambda x, edge_index: x, data, np.array([False, True]))
        array([1])
    """
    asked = nodes if setting == "inductive" else np.ones_like(nodes)
    graph = induced(data, asked, device=model_device([model]) or "cpu")
    with quiet([model]):
        chosen: IntArray = ask_model(model, graph.shown()).argmax(dim=-1).cpu().numpy()
    return chosen[nodes[asked]]
