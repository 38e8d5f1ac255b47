"""GIN's convolution: a sum over neighbours, then a perceptron."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP, GINConv

from glasshouse.graph.models.layer_type import LayerType, register_layer_type
from glasshouse.graph.programs.rows import stacked_modules
from glasshouse.graph.rule.incremental.operations import batched_maps, batched_vectors, perceptron, spread
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.rule.incremental.sum import Summed
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix
from glasshouse.graph.training.many.layers import Layer, Weights, summed
from glasshouse.graph.training.many.rows import Deferred, batched_perceptron, has_rows

__all__: list[str] = []


def _starts_linear(layer: GINConv) -> bool:
    """Whether its perceptron is a sequence that starts with a linear map."""
    parts = list(layer.nn.children())
    return type(layer.nn) is nn.Sequential and bool(parts) and type(parts[0]) is nn.Linear


def _toggled(layers: Sequence[GINConv], build: Builder, x: Slot) -> Slot:
    """The first linear map commutes with the sum; the steps after it are applied to each finished row."""
    if type(layers[0].nn) is MLP and len(layers[0].nn.lins):
        maps, rest = [layer.nn.lins[0] for layer in layers], [_after_first(layer.nn) for layer in layers]
    elif _starts_linear(layers[0]):
        maps, rest = [layer.nn[0] for layer in layers], [layer.nn[1:] for layer in layers]
    else:
        return perceptron(build, spread(build, x, normalisation="none"), x, layers)
    weight, bias = batched_maps(maps), batched_vectors([one.bias for one in maps])
    eps = torch.stack([torch.as_tensor(layer.eps).detach().reshape(()).to(weight) for layer in layers])
    root = weight * (1 + eps).view(-1, 1, 1)
    sums = build.message(Summed.of(weight=weight, bias=bias, root=root, normalisation="none"), x)
    return build.rows(stacked_modules(rest, sums.sample), sums) if len(list(rest[0].children())) else sums


def _after_first(perceptron: MLP) -> MLP:
    """PyG's perceptron without its first linear map."""
    rest = copy.deepcopy(perceptron)
    rest.lins[0] = nn.Identity()
    return rest


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
    LayerType(
        convolution=GINConv,
        can_toggle=lambda c: c.aggr in ("add", "sum"),
        toggled=_toggled,
        can_batch=_can_batch,
        batched=_batched,
    )
)
