"""What models answer about every node of a graph, for given edges: logits, and losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import FloatArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import check_finite, finite_logits
from glasshouse.core.outputs import losses_from_logits
from glasshouse.graph.models.edge_values import with_edges
from glasshouse.graph.models.networks import model_device
from glasshouse.graph.models.profile import AnyModel, ask_model, evaluation_mode, raw_models


def node_logits(
    models: Sequence[AnyModel], data: Data, edges: Tensor | None = None, *, ids: TextArray | None = None
) -> Iterator[FloatArray]:
    """Logits of one model after another, float64 [n, C], finite; a model with too few classes is refused.

    Args:
        models: to ask.
        data: the graph.
        edges: which of its edges the models are given, bool [E] or positions; all by default.
        ids: [n] names of the nodes, for a refusal; their numbers by default.

    Example:
        >>> import torch
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1]))
        >>> next(node_logits([lambda x, edges: x - 1], data, torch.tensor([False])))
        array([[ 0., -1.],
               [-1.,  0.]])
    """
    labels = data.y.cpu().numpy().astype(np.int64)
    names, last = np.arange(len(labels)).astype(str) if ids is None else ids, int(labels.max())
    for model in models:
        device = model_device(raw_models([model])) or data.x.device
        with evaluation_mode([model]):
            logits: FloatArray = ask_model(model, with_edges(data, edges, device=device)).double().cpu().numpy()
        if logits.ndim != 2 or logits.shape[1] <= last:
            raise InputError(f"models: one answers with shape {logits.shape}, but the labels go up to {last}.")
        check_finite(logits, names, place="model", labels=labels)
        yield finite_logits(logits)


def node_losses(models: Sequence[AnyModel], data: Data, edges: Tensor | None = None) -> FloatArray:
    """Losses of all models on all nodes, float64 [K, n], for all or some of the edges.

    Example:
        >>> import torch
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1]))
        >>> node_losses([lambda x, edges: x], data).round(3)
        array([[0.313, 0.313]])
    """
    labels = data.y.cpu().numpy().astype(np.int64)
    found = np.empty((len(models), len(labels)))
    for row, logits in zip(found, node_logits(models, data, edges), strict=True):
        row[:] = losses_from_logits(logits, labels)
    return found
