"""A graph as a population: what a shadow pool needs to know about it."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, IntArray, TextArray
from glasshouse.core.digests import digest_arrays, row_digests
from glasshouse.data import as_ids, as_members, as_population
from glasshouse.graph.data.checking import check_graph
from glasshouse.graph.models.calls import edge_values, held_values, with_edges
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
