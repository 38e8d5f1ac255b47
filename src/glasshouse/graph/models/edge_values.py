"""Values of edges, such as weights: they belong to single edges, and are chosen together with them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.models.tensor_cache import on_device

EDGE_VALUES = ("edge_weight", "edge_attr", "edge_type")

HeldValues = tuple[tuple[str, int], ...]  # names of the values that a graph has, each with its number of axes


def held_values(data: Any) -> HeldValues:
    """Which values the edges of a graph have: each name with its number of axes, 1 for [E] and 2 for [E, d]."""
    found = ((name, getattr(data, name, None)) for name in EDGE_VALUES)
    return tuple((name, value.ndim) for name, value in found if value is not None)


def edge_values(data: Any) -> dict[str, Tensor]:
    """The values that the edges of a graph have, by name, in the type in which a model computes.

    Weights, and features with fractions, get the type of ``x``, since layers multiply them with it. Features that are
    whole numbers stay so: they may be codes that a model looks up.
    """
    dtype = data.x.dtype if data.x.is_floating_point() else torch.float32
    found = {}
    for name, _ in held_values(data):
        value = getattr(data, name)
        is_code = name != "edge_weight" and not value.is_floating_point()
        found[name] = value.to(data.x.device, value.dtype if is_code else dtype)
    return found


def with_edges(data: Any, chosen: Tensor | None = None, *, device: torch.device | None = None) -> Data:
    """All that a model may be given of a graph: features, and edges with their values; no labels.

    Edges are all or the ``chosen`` ones, bool [E] or positions [e]. The ``device`` is by default that of ``x``.

    Example:
        >>> edges = torch.tensor([[0, 1, 0], [1, 0, 1]])
        >>> data = Data(x=torch.eye(2), edge_index=edges, edge_weight=torch.tensor([1.0, 2.0, 3.0]))
        >>> part = with_edges(data, torch.tensor([True, False, True]))
        >>> part.edge_index.tolist(), part.edge_weight.tolist()
        ([[0, 0], [1, 1]], [1.0, 3.0])
    """
    device = device or data.x.device
    x, edge_index = on_device(data.x, device), on_device(data.edge_index, device)
    values = {name: on_device(value, device) for name, value in edge_values(data).items()}
    if chosen is not None:
        chosen = chosen.to(device)
        edge_index, values = edge_index[:, chosen], {name: value[chosen] for name, value in values.items()}
    return Data(x=x, edge_index=edge_index, **values)
