"""GIN's convolution: a sum over neighbours, then a perceptron."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv

from glasshouse.graph.models.layer_types import LayerType, register_layer_type
from glasshouse.graph.programs.stacked import stacked_modules
from glasshouse.graph.rule.toggle.layers.summed import Summed
from glasshouse.graph.rule.toggle.layers.weights import batched_maps, batched_vectors
from glasshouse.graph.rule.toggle.lowering import Builder, Slot
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, summed
from glasshouse.graph.training.batched.perceptron import batched_perceptron, has_rows
from glasshouse.graph.training.batched.rows import Deferred
from glasshouse.graph.training.sparse import SparseMatrix

__all__: list[str] = []


def _sums(layer: GINConv) -> bool:
    """Whether it sums, and its perceptron starts with a linear map."""
    parts = list(layer.nn.children())
    return layer.aggr == "add" and type(layer.nn) is nn.Sequential and bool(parts) and type(parts[0]) is nn.Linear


def _toggled(layers: Sequence[GINConv], build: Builder, x: Slot) -> Slot:
    """The first linear map commutes with the sum; the steps after it are applied to each finished row."""
    weight = batched_maps([layer.nn[0] for layer in layers])
    bias = batched_vectors([layer.nn[0].bias for layer in layers])
    eps = torch.stack([torch.as_tensor(layer.eps).detach().reshape(()).to(weight) for layer in layers])
    root = weight * (1 + eps).view(-1, 1, 1)
    sums = build.message(Summed.of(weight=weight, bias=bias, root=root, normalisation="none"), x)
    rest = [layer.nn[1:] for layer in layers]
    return build.rows(stacked_modules(rest, sums.sample), sums) if len(rest[0]) else sums


def _batched(layer: GINConv, graph: BatchedGraph) -> Layer:
    sums = summed(graph)
    perceptron = batched_perceptron(layer.nn, graph, name="nn")

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        def added(rows: Tensor) -> Tensor:
            return (1 + weights["eps"][:, :, None]) * rows + graph.spread(sums, rows)

        # a linear map, which most perceptrons start with, can be swapped with the sum
        sent = Deferred(linear=lambda weight: added(graph.linear(x, weight)), rows=lambda: added(graph.dense(x)))
        return perceptron(sent, weights)

    return step


def _can_batch(layer: GINConv) -> bool:
    return layer.aggr == "add" and has_rows(layer.nn)


register_layer_type(
    LayerType(convolution=GINConv, can_toggle=_sums, toggled=_toggled, can_batch=_can_batch, batched=_batched)
)
