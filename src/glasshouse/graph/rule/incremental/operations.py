"""Operations that several layer types are made of: linear maps of rows, sums of neighbours, and sums of values.

The weights of one layer of several models are detached and in one tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from glasshouse.graph.programs.rows import stacked_modules
from glasshouse.graph.rule.incremental.attention import Affine
from glasshouse.graph.rule.incremental.layer import EdgeValues
from glasshouse.graph.rule.incremental.program import Builder, Slot
from glasshouse.graph.rule.incremental.sum import Summed


def batched_maps(layers: Sequence[nn.Linear]) -> Tensor:
    """Weights of linear maps, [models, width, out].

    Example:
        >>> batched_maps([nn.Linear(2, 3), nn.Linear(2, 3)]).shape
        torch.Size([2, 2, 3])
    """
    return torch.stack([layer.weight.detach().T for layer in layers]).contiguous()


def batched_vectors(vectors: Sequence[Tensor | None]) -> Tensor | None:
    """Biases of all models, [models, out], or None if they have none.

    Example:
        >>> batched_vectors([None, None]) is None
        True
    """
    return None if vectors[0] is None else torch.stack([cast("Tensor", vector).detach() for vector in vectors])


def mapped(build: Builder, x: Slot, layers: Sequence[nn.Linear]) -> Slot:
    """Each model's own linear map of every row.

    Example:
        >>> build = Builder(models=2, device=torch.device("cpu"), dtype=torch.float32)
        >>> mapped(build, build.features(torch.ones(5, 3)), [nn.Linear(3, 4), nn.Linear(3, 4)]).width
        4
    """
    return build.rows(affine(layers), x)


def affine(layers: Sequence[nn.Linear]) -> Affine:
    """The linear maps of all models.

    Example:
        >>> affine([nn.Linear(3, 4), nn.Linear(3, 4)]).weight.shape
        torch.Size([2, 3, 4])
    """
    return Affine(weight=batched_maps(layers), bias=batched_vectors([layer.bias for layer in layers]))


def spread(build: Builder, x: Slot, **options: Any) -> Slot:
    """The sums of neighbours' values; options are those of :class:`~glasshouse.graph.rule.incremental.sum.Summed`.

    Example:
        >>> build = Builder(models=2, device=torch.device("cpu"), dtype=torch.float32)
        >>> spread(build, build.features(torch.ones(5, 3)), normalisation="mean").shared
        True
    """
    models, item = int(x.sample.shape[1]), x.sample.element_size()
    layer = Summed(weight=None, root=None, bias=None, models=models, width=x.width, item=item, **options)
    return build.message(layer, x, shared=x.shared)


def added(build: Builder, *values: Slot, factors: Sequence[float] | None = None, bias: Tensor | None = None) -> Slot:
    """The sum of values, each times its factor, plus a bias [models, width].

    Example:
        >>> build = Builder(models=2, device=torch.device("cpu"), dtype=torch.float32)
        >>> x = build.features(torch.ones(5, 3))
        >>> added(build, x, x, factors=(1.0, -1.0)).sample.abs().max()
        tensor(0.)
    """
    factors = factors or [1.0] * len(values)

    def apply(*rows: Tensor) -> Tensor:
        total = sum(row if factor == 1 else factor * row for row, factor in zip(rows, factors, strict=True))
        return total if bias is None else total + bias  # type: ignore[return-value]

    return build.rows(apply, *values)


def gcn_options(*, normalize: bool, loops: bool, improved: bool, edge_weight: Tensor | None) -> dict[str, Any]:
    """How GCN's normalisation (``torch_geometric.nn.conv.gcn_conv.gcn_norm``) scales messages.

    Example:
        >>> gcn_options(normalize=False, loops=True, improved=False, edge_weight=None)["normalisation"]
        'none'
    """
    if not normalize:
        return {"normalisation": "none", "loops": "listed", "edge_weight": edge_weight}
    return {
        "normalisation": "symmetric",
        "loops": "added" if loops else "listed",
        "edge_weight": edge_weight,
        "fill": 2.0 if improved else 1.0,
    }


def shared_weight(edge_weight: Tensor | None) -> bool:
    """Whether there is at most one number per edge, the same for all models, [edges, 1].

    Example:
        >>> shared_weight(None), shared_weight(torch.ones(7, 1)), shared_weight(torch.ones(7, 3))
        (True, True, False)
    """
    return edge_weight is None or (edge_weight.ndim == 2 and edge_weight.shape[1] == 1)


def edge_features(layers: Sequence[nn.Linear], features: Tensor) -> EdgeValues:
    """Features of edges [edges, models or 1, ...], one number or several per edge, and the maps of all models.

    Example:
        >>> edge_features([nn.Linear(1, 4)], torch.ones(7, 1)).of(torch.tensor([3])).shape
        torch.Size([1, 1, 4])
    """
    maps = affine(layers)
    features = features.unsqueeze(2) if features.ndim == 2 else features
    return EdgeValues(values=features.to(maps.weight.dtype), weight=maps.weight, bias=maps.bias)


def loop_fill(layer: Any) -> float | Literal["mean"] | None:
    """The features of self-loops that an attention layer adds; None if it adds none.

    Example:
        >>> from torch_geometric.nn import GATConv
        >>> loop_fill(GATConv(2, 2)), loop_fill(GATConv(2, 2, add_self_loops=False))
        ('mean', None)
    """
    if not layer.add_self_loops:
        return None
    return "mean" if layer.fill_value == "mean" else float(layer.fill_value)


def perceptron(build: Builder, sums: Slot, x: Slot, layers: Sequence[Any]) -> Slot:
    """``nn(sums + (1 + eps) x)`` of layers with a perceptron ``nn``, as in GIN."""
    eps = torch.stack([torch.as_tensor(layer.eps).detach().reshape(1).to(sums.sample) for layer in layers])
    total = build.rows(lambda sums, x: sums + (1 + eps) * x, sums, x)
    return build.rows(stacked_modules([layer.nn for layer in layers], total.sample), total)


def spread_options(layer: Any, edge_weight: Tensor | None) -> dict[str, Any] | None:
    """How a layer of several sums scales messages; None if each model has its own weights of edges.

    Example:
        >>> from torch_geometric.nn import LGConv
        >>> spread_options(LGConv(), None)["normalisation"]
        'symmetric'
    """
    if not shared_weight(edge_weight):
        return None
    edges = None if edge_weight is None else edge_weight[:, 0]
    normalize = getattr(layer, "normalize", True)
    loops = getattr(layer, "add_self_loops", False)
    return gcn_options(normalize=normalize, loops=loops, improved=False, edge_weight=edges)
