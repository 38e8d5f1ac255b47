"""From models of the same shape to stacked layers: one entry for each convolution that can be toggled exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.toggle.layers.attention import Attention
from glasshouse.graph.rule.toggle.layers.base import Layer
from glasshouse.graph.rule.toggle.layers.maximum import Maximum
from glasshouse.graph.rule.toggle.layers.summed import Summed

__all__ = ["LayerStep", "batch_layers", "can_batch", "shape_of"]


@dataclass(frozen=True, kw_only=True)
class LayerStep:
    """A stacked layer, and whether a ReLU follows it.

    Example:
        >>> LayerStep(layer=Maximum(weight=torch.ones(1, 2, 3), root=None, bias=None), relu=False).relu
        False
    """

    layer: Layer
    relu: bool


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """How to read one type of convolution: whether its options are ones we know, and how to stack several."""

    known: Callable[[Any], bool]
    stack: Callable[[Sequence[Any]], list[Layer]]


def can_batch(model: Model) -> bool:
    """Whether a model is our GNN of convolutions that can be toggled row by row.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> can_batch(build_gnn("gin", features=2, hidden=4, classes=2)), can_batch(lambda x, edge_index: x)
        (True, False)
    """
    if type(model) is not GNN:  # a subclass may compute something else
        return False
    return all(
        type(layer) in _KINDS and _KINDS[type(layer)].known(layer) and layer.flow == "source_to_target"
        for layer in model.convolutions
    )


def shape_of(model: Model) -> tuple[object, ...]:
    """What must agree for two models to share one stack: layer types, options and shapes.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> shape_of(build_gnn("gcn", features=2, hidden=4, classes=2))[0]
        'GCNConv(2, 4)'
    """
    if not can_batch(model):
        manners = manners_of(model)
        return ("black box", manners.hops, manners.everywhere)
    module = cast("nn.Module", model)
    shapes = [(name, tuple(value.shape), value.dtype) for name, value in module.state_dict().items()]
    layers = list(cast("GNN", model).convolutions)
    options = [getattr(layer, name, None) for layer in layers for name in ("aggr", "concat", "negative_slope")]
    return (*[repr(layer) for layer in layers], *options, *shapes)


def batch_layers(models: Sequence[Model]) -> list[LayerStep]:
    """The layers of models of one shape, weights stacked, detached and on the models' device.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> len(batch_layers([build_gnn("sgc", features=2, hidden=4, classes=2, layers=3) for _ in range(2)]))
        3
    """
    columns = list(zip(*[cast("GNN", model).convolutions for model in models], strict=True))
    stages: list[LayerStep] = []
    for number, column in enumerate(columns, start=1):
        *before, last = _KINDS[type(column[0])].stack(column)
        stages += [LayerStep(layer=layer, relu=False) for layer in before]
        stages.append(LayerStep(layer=last, relu=number < len(columns)))
    return stages


def _maps(layers: Sequence[nn.Linear]) -> Tensor:
    """Weights of linear maps, [models, width, out]."""
    return torch.stack([layer.weight.detach().T for layer in layers]).contiguous()


def _vectors(vectors: Sequence[Tensor | None]) -> Tensor | None:
    """Biases of all models, [models, out], or None where they have none."""
    return None if vectors[0] is None else torch.stack([cast("Tensor", vector).detach() for vector in vectors])


def _gcn(layers: Sequence[GCNConv]) -> list[Layer]:
    weight = _maps([layer.lin for layer in layers])
    bias = _vectors([layer.bias for layer in layers])
    return [_summed(weight=weight, bias=bias, normalisation="symmetric")]


def _sgc(layers: Sequence[SGConv]) -> list[Layer]:
    """Averaging and the linear map commute: map first, so that the K averages are as narrow as the classes."""
    weight = _maps([layer.lin for layer in layers])
    bias = _vectors([layer.lin.bias for layer in layers])
    first = _summed(weight=weight, bias=bias if layers[0].K == 1 else None, normalisation="symmetric")
    rest = [
        Summed(
            weight=None,
            root=None,
            bias=bias if step == layers[0].K else None,
            normalisation="symmetric",
            models=first.models,
            width=first.width,
            item=first.item,
        )
        for step in range(2, layers[0].K + 1)
    ]
    return [first, *rest]


def _sage(layers: Sequence[SAGEConv]) -> list[Layer]:
    weight = _maps([layer.lin_l for layer in layers])
    root = _maps([layer.lin_r for layer in layers]) if layers[0].root_weight else None
    bias = _vectors([layer.lin_l.bias for layer in layers])
    if layers[0].aggr == "max":
        return [Maximum(weight=weight, root=root, bias=bias)]
    return [_summed(weight=weight, bias=bias, root=root, normalisation="mean")]


def _gin(layers: Sequence[GINConv]) -> list[Layer]:
    """The first linear map commutes with the sum; what follows it finishes each row."""
    weight = _maps([layer.nn[0] for layer in layers])
    bias = _vectors([layer.nn[0].bias for layer in layers])
    eps = torch.stack([torch.as_tensor(layer.eps).detach().reshape(()).to(weight) for layer in layers])
    steps: list[Callable[[Tensor], Tensor]] = [
        torch.relu if isinstance(column[0], nn.ReLU) else _Dense(column)
        for column in zip(*[layer.nn[1:] for layer in layers], strict=True)
    ]

    def finish(rows: Tensor) -> Tensor:
        for step in steps:
            rows = step(rows)
        return rows

    return [
        _summed(weight=weight, bias=bias, root=weight * (1 + eps).view(-1, 1, 1), normalisation="none", finish=finish)
    ]


def _gat(layers: Sequence[GATConv]) -> list[Layer]:
    return [
        Attention(
            weight=_maps([layer.lin for layer in layers]),
            source=torch.cat([layer.att_src.detach() for layer in layers]),
            receiver=torch.cat([layer.att_dst.detach() for layer in layers]),
            bias=_vectors([layer.bias for layer in layers]),
            slope=float(layers[0].negative_slope),
            concat=bool(layers[0].concat),
        )
    ]


class _Dense:
    """A linear layer of each model inside GIN's perceptron, on rows [rows, models, width]."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.weight, self.bias = _maps(layers), _vectors([layer.bias for layer in layers])

    def __call__(self, rows: Tensor) -> Tensor:
        rows = torch.bmm(rows.transpose(0, 1), self.weight).transpose(0, 1)
        return rows if self.bias is None else rows + self.bias


def _summed(*, weight: Tensor, bias: Tensor | None, root: Tensor | None = None, **options: Any) -> Summed:
    models, _, width = weight.shape
    item = weight.element_size()
    return Summed(weight=weight, root=root, bias=bias, models=models, width=width, item=item, **options)


def _plain_perceptron(module: object) -> bool:
    return (
        isinstance(module, nn.Sequential)
        and isinstance(module[0], nn.Linear)
        and all(type(part) in (nn.Linear, nn.ReLU) for part in module)
    )


_KINDS: dict[type, _Kind] = {
    GCNConv: _Kind(
        known=lambda c: c.normalize and c.add_self_loops and not c.improved and not c.cached and c.aggr == "add",
        stack=_gcn,
    ),
    SGConv: _Kind(known=lambda c: c.add_self_loops and not c.cached and c.aggr == "add", stack=_sgc),
    SAGEConv: _Kind(known=lambda c: c.aggr in ("max", "mean") and not c.normalize and not c.project, stack=_sage),
    GINConv: _Kind(known=lambda c: c.aggr == "add" and _plain_perceptron(c.nn), stack=_gin),
    GATConv: _Kind(
        known=lambda c: c.add_self_loops and c.edge_dim is None and not c.residual and c.lin is not None,
        stack=_gat,
    ),
}
