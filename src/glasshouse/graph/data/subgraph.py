"""The graph that some of the nodes induce: these nodes, and the edges between two of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray
from glasshouse.data import as_members
from glasshouse.graph.data.checking import check_graph
from glasshouse.graph.models.edge_values import edge_values, held_values, with_edges
from glasshouse.graph.models.tensor_cache import on_device


class InducedGraph(NamedTuple):
    """Some nodes of a graph with new numbers, and the edges between them: all that a model may see of it."""

    x: Tensor  # [m, features]
    edge_index: Tensor  # [2, edges]
    y: Tensor  # [m]
    edge_weight: Tensor | None = None  # [edges]
    edge_attr: Tensor | None = None  # [edges] or [edges, d]
    edge_type: Tensor | None = None  # [edges]

    def shown(self) -> Data:
        """What a model is given of it: everything but the labels."""
        return with_edges(self)

    def part(self, nodes: Tensor, edges: Tensor, *, device: torch.device | str) -> InducedGraph:
        """Some of its nodes [m] and of the edges between them, by their positions, ascending, on a device."""
        position = torch.empty(len(self.x), dtype=torch.long, device=nodes.device)
        position[nodes] = torch.arange(len(nodes), device=nodes.device)
        return InducedGraph(
            x=self.x[nodes].to(device),
            edge_index=position[self.edge_index[:, edges]].to(device),
            y=self.y[nodes].to(device),
            **{name: getattr(self, name)[edges].to(device) for name, _ in held_values(self)},
        )


def induced(data: Data, nodes: BoolArray, *, device: torch.device | str = "cpu") -> InducedGraph:
    """The graph induced by the chosen nodes, bool [n], checked, on a device."""
    check_graph(data, nodes=nodes)
    place = torch.device(device)
    names = ["x", "edge_index", "y", *(name for name, _ in held_values(data))]
    whole = InducedGraph(**{name: on_device(getattr(data, name), place) for name in names})
    chosen = torch.from_numpy(as_members(nodes, (len(data.x),), place="members")).to(place)
    found = whole.part(chosen.nonzero()[:, 0], chosen[whole.edge_index].all(0).nonzero()[:, 0], device=place)
    found = found._replace(x=found.x.float(), y=found.y.long())
    return found._replace(**edge_values(found))
