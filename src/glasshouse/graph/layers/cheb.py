"""ChebConv: Chebyshev polynomials of the scaled Laplacian."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import ChebConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.rule.incremental.operations import added, batched_vectors, mapped, spread
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, biased

__all__: list[str] = []


def _toggled(layers: Sequence[ChebConv], build: Builder, x: Slot) -> Slot:
    """Clenshaw's scheme: ``b_k = x W_k + 2 P b_(k+1) - b_(k+2)``, with ``P = -D^(-1/2) A D^(-1/2)``.

    The largest entry of the Laplacian is always 1, which PyTorch Geometric scales it by. D holds out-degrees, which are
    the degrees where all edges go both ways.
    """
    powers = len(layers[0].lins)
    bias = batched_vectors([layer.bias for layer in layers])
    before, made = None, mapped(build, x, [layer.lins[powers - 1] for layer in layers])
    for power in reversed(range(powers - 1)):
        own = mapped(build, x, [layer.lins[power] for layer in layers])
        sums = spread(build, made, normalisation="symmetric", loops="dropped")
        parts, factors = [sums, own], [-1.0 if power == 0 else -2.0, 1.0]
        if before is not None:
            parts, factors = [*parts, before], [*factors, -1.0]
        before, made = made, added(build, *parts, factors=factors, bias=bias if power == 0 else None)
    return made if powers > 1 or bias is None else added(build, made, bias=bias)


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


register_layer_type(
    LayerType(
        convolution=ChebConv,
        can_toggle=lambda c: c.aggr in ("add", "sum") and c.normalization == "sym",
        toggled=_toggled,
        both_ways=True,
        can_batch=lambda c: c.aggr == "add",
        batched=_batched,
    )
)
