"""Which models can be worked on together: those that share a program and the shapes of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torch import nn

from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.model import Model

__all__ = ["by_shape", "shape_of"]


def shape_of(model: Model) -> tuple[object, ...]:
    """What must agree for two models to be stacked: the calls of their programs, settings of layers, and shapes.

    Example:
        >>> shape_of(lambda x, edge_index: x)
        ('black box', 2, False)
    """
    manners = manners_of(model)
    if manners.program is None:
        return ("black box", manners.hops, manners.everywhere)
    state = cast("nn.Module", model).state_dict().items()
    shapes = [(name, tuple(value.shape), value.dtype) for name, value in state]
    return (manners.program.signature, manners.probabilities, manners.hops, *shapes)


def by_shape(models: Sequence[Model]) -> list[list[int]]:
    """The places of the models in groups of one shape, in the order in which the shapes first appear.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.asking import meet
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> models = [build_gnn(name, features=2, hidden=4, classes=2) for name in ("gcn", "gat", "gcn")]
        >>> meet(models, Data(x=torch.randn(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]])))
        >>> by_shape(models)
        [[0, 2], [1]]
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, model in enumerate(models):
        groups.setdefault(shape_of(model), []).append(place)
    return list(groups.values())
