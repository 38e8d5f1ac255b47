"""How far a black box sees along the edges, measured on a path and on the graph, with values of its edges."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.models.edge_values import edge_values
from glasshouse.graph.programs.reach import ModelReach, reach_on_graph, reach_on_path

__all__ = ["measured_reach"]


def measured_reach(
    ask: Callable[[Data], Tensor], data: Data, *, both_ways: bool, expected: int, on_graph: bool
) -> ModelReach:
    """The reach of a model on a long path of the graph's own rows, and on the graph itself.

    Args:
        ask: the model, from a graph to logits [n, classes].
        data: the graph.
        both_ways: whether its edges go both ways.
        expected: a first guess of the reach.
        on_graph: whether to ask about the graph itself too.

    Example:
        >>> from torch_geometric.nn import SGConv
        >>> layer, data = SGConv(3, 2, K=4), Data(x=torch.randn(9, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> ask = lambda data: layer(data.x, data.edge_index).detach()
        >>> measured_reach(ask, data, both_ways=True, expected=1, on_graph=True)
        ModelReach(hops=4, everywhere=False)
    """
    values = edge_values(data)
    found = []
    for place in _typical_edges(values):

        def along(features: Tensor, edges: Tensor, place: int = place) -> Tensor:
            count = edges.shape[1]
            same = {name: value[place].expand(count, *value.shape[1:]) for name, value in values.items()}
            return ask(Data(x=features, edge_index=edges, **same))

        found.append(reach_on_path(along, data.x, both_ways=both_ways, expected=expected))
    reach = ModelReach(max(one.hops for one in found), any(one.everywhere for one in found))
    if not on_graph or reach.everywhere:
        return reach
    pairs = _pair_numbers(data.edge_index, len(data.x))

    def within(features: Tensor, edges: Tensor) -> Tensor:  # the probe takes out all edges of a pair, or none
        kept = torch.isin(pairs, _pair_numbers(edges, len(data.x)))
        return ask(Data(x=features, edge_index=edges, **{name: value[kept] for name, value in values.items()}))

    return reach_on_graph(within, data.x, data.edge_index, hops=reach.hops)


def _typical_edges(values: dict[str, Tensor]) -> list[int]:
    """Edges whose values a made-up path gets: the one with the largest, and one at random; a 0 would hide a path.

    All edges of a path get the same values, so that they do not depend on the order of nodes and edges.
    """
    sizes = [value.double().abs().flatten(1).sum(1) if value.ndim > 1 else value.abs() for value in values.values()]
    if not sizes or not len(sizes[0]):
        return [0]
    drawn = torch.randint(len(sizes[0]), (1,), generator=torch.Generator().manual_seed(0))
    return [int(sizes[0].argmax()), int(drawn)]


def _pair_numbers(edge_index: Tensor, count: int) -> Tensor:
    """[E] one number for each pair of nodes that an edge joins."""
    return edge_index[0].long() * count + edge_index[1]
