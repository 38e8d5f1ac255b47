"""A graph as a population, for a shadow pool; and the graph that some of its nodes induce."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, IntArray, TextArray
from glasshouse.core.digests import digest_arrays, row_digests
from glasshouse.data import as_ids, as_members, as_population
from glasshouse.graph.data.checking import check_graph
from glasshouse.graph.models.calls import edge_values, held_values
from glasshouse.graph.models.tensor_cache import on_device


@dataclass(frozen=True, eq=False)
class GraphPopulation:
    """The nodes of a graph as records. `glasshouse.data.as_population` makes it from a `Data`."""

    training_data: Data  # the graph that is given to trainers

    def __len__(self) -> int:
        return int(self.training_data.num_nodes)

    @functools.cached_property
    def ids(self) -> TextArray:
        """[n] the graph's own ``ids`` if it has any, else the numbers of the nodes."""
        return as_ids(getattr(self.training_data, "ids", None), len(self), place="data.ids")

    @property
    def independent(self) -> bool:
        """False: an answer about a node depends on the nodes around it, and audits ask with other edges."""
        return False

    def fingerprint(self) -> str:
        """A short hash of all that the graph holds.

        Edge weights, masks and other fields may change what a user's own trainer does, so they are part of it. Names of
        nodes and the sentence about the graph are not: they change nothing.
        """
        data = self.training_data
        main = digest_arrays([data.x, data.edge_index, data.y])
        names = sorted(set(data.keys()) - {"x", "edge_index", "y", "about", "ids"})
        more = [f"{name} {_in_short(value)}" for name in names if (value := getattr(data, name, None)) is not None]
        return hashlib.sha256("; ".join([main, *more]).encode()).hexdigest()[:16] if more else main

    def digests(self, nodes: IntArray | None = None) -> NDArray[np.bytes_]:
        """[n] a short hash of each node's features and label, or of some nodes: equal nodes have equal hashes."""
        x, y = self.training_data.x, self.training_data.y
        chosen = slice(None) if nodes is None else torch.from_numpy(nodes)
        return row_digests(x[chosen], y[chosen].cpu().numpy())


def _in_short(value: Any) -> str:
    if hasattr(value, "detach") or hasattr(value, "__array__"):
        return digest_arrays([value])
    return repr(value) if isinstance(value, str | int | float | bool | list | tuple) else type(value).__name__


as_population.register(Data, GraphPopulation)


def part_of(graph: Data, nodes: Tensor, edges: Tensor, *, device: torch.device | str) -> Data:
    """Some nodes [m] of a graph with new numbers, and some of the edges between them, by positions, on a device."""
    position = torch.empty(len(graph.x), dtype=torch.long, device=nodes.device)
    position[nodes] = torch.arange(len(nodes), device=nodes.device)
    return Data(
        x=graph.x[nodes].to(device),
        edge_index=position[graph.edge_index[:, edges]].to(device),
        y=graph.y[nodes].to(device),
        **{name: getattr(graph, name)[edges].to(device) for name, _ in held_values(graph)},
    )


def induced(data: Data, nodes: BoolArray, *, device: torch.device | str = "cpu") -> Data:
    """The graph induced by the chosen nodes, bool [n], checked, on a device: all that a model may see, and labels."""
    check_graph(data, nodes=nodes)
    place = torch.device(device)
    names = ["x", "edge_index", "y", *(name for name, _ in held_values(data))]
    whole = Data(**{name: on_device(getattr(data, name), place) for name in names})
    chosen = torch.from_numpy(as_members(nodes, (len(data.x),), place="members")).to(place)
    found = part_of(whole, chosen.nonzero()[:, 0], chosen[whole.edge_index].all(0).nonzero()[:, 0], device=place)
    found.x, found.y = found.x.float(), found.y.long()
    found.update(edge_values(found))
    return found
