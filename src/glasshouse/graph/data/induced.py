"""The graph that some of the nodes induce: they, and the edges between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.graph.data.edge_values import refuse_edge_values
from glasshouse.population import as_members

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["InducedGraph", "induced"]


class InducedGraph(NamedTuple):
    """Some nodes of a graph, numbered anew, and the edges between them: all that a model may see of it."""

    x: Tensor  # [m, features]
    edge_index: Tensor  # [2, edges]
    y: Tensor  # [m]


def induced(data: Data, nodes: BoolArray, *, device: torch.device | str = "cpu") -> InducedGraph:
    """The graph induced by the chosen nodes, checked.

    Args:
        data: with ``x`` [n, features], ``edge_index`` [2, edges] and ``y`` [n].
        nodes: [n] booleans.
        device: where its tensors shall be.

    Example:
        >>> from torch_geometric.data import Data
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), y=torch.tensor([0, 1, 2]))
        >>> import numpy as np
        >>> induced(data, np.array([True, False, True])).edge_index.tolist()
        [[1], [0]]
    """
    x, edge_index, y = data.x, data.edge_index, data.y
    if not (isinstance(x, Tensor) and isinstance(edge_index, Tensor) and isinstance(y, Tensor)):
        raise InputError("data: x, edge_index and y are all needed; set those that are missing.")
    refuse_edge_values(data)
    count = int(x.shape[0])
    if y.shape != (count,):
        raise InputError(f"data.y: shape {tuple(y.shape)} does not fit {count} nodes; give one class a node, [n].")
    if edge_index.numel() and not (int(edge_index.min()) >= 0 and int(edge_index.max()) < count):
        raise InputError(f"data.edge_index: names nodes outside 0 ... {count - 1}; drop those edges.")
    chosen = torch.from_numpy(as_members(nodes, (count,), place="members")).to(x.device)
    position = chosen.long().cumsum(0) - 1
    edges = edge_index.to(x.device)
    kept = InducedGraph(
        x=x[chosen].float().to(device),
        edge_index=position[edges[:, chosen[edges].all(0)]].to(device),
        y=y.to(x.device)[chosen].long().to(device),
    )
    if not bool(torch.isfinite(kept.x).all()):
        raise InputError("data.x: holds NaN or infinite values; fill them in first.")
    return kept
