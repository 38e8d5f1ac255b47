"""ChebConv: Chebyshev polynomials of the scaled Laplacian."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import ChebConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, biased
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


def _batched(layer: ChebConv, graph: BatchedGraph) -> Layer:
    matrix = graph.kept(("laplacian", layer.normalization), lambda: _laplacian(layer, graph))
    last = len(layer.lins) - 1

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        """Sum of T_k(L) x W_k by Clenshaw's rule, so that messages are as wide as the result."""
        maps = [graph.linear(x, weights[f"lins.{power}.weight"]) for power in range(last + 1)]
        hidden, before = maps[last], None
        for power in reversed(range(last)):
            spread = graph.spread(matrix, hidden)
            following = maps[power] + (2 * spread if power else spread)
            hidden, before = following if before is None else following - before, hidden
        return biased(hidden, weights.get("bias"))

    return step


def _laplacian(layer: ChebConv, graph: BatchedGraph) -> SparseMatrix:
    """Scaled by the largest entry of each graph's own Laplacian, so one graph at a time."""
    edges, weight = [], []
    for k, one in enumerate(graph.own):
        found, values = layer.__norm__(one.edge_index, len(one.x), None, layer.normalization, dtype=torch.float32)
        edges.append(found + k * graph.size)
        weight.append(values)
    return SparseMatrix.of_edges(torch.cat(edges, dim=1), torch.cat(weight), nodes=graph.nodes)


register_layer_type(LayerType(convolution=ChebConv, can_batch=lambda c: c.aggr == "add", batched=_batched))
