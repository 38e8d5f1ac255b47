from __future__ import annotations

import pytest
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from glasshouse.graph.layers.layer_type import LAYER_TYPES


class _Other(nn.Sequential):
    """A subclass, whose forward pass may be anything."""


@pytest.mark.parametrize(
    ("layer", "can_toggle", "can_train"),
    [
        (GCNConv(3, 2), True, True),
        (GCNConv(3, 2, improved=True), True, True),
        (GCNConv(3, 2, normalize=False), True, True),
        (SGConv(3, 2, K=2, cached=True), False, True),
        (SAGEConv(3, 2, aggr="max"), True, True),
        (SAGEConv(3, 2, root_weight=False), True, True),
        (SAGEConv(3, 2, normalize=True), True, True),
        (GINConv(nn.Sequential(nn.Linear(3, 2), nn.ReLU())), True, True),
        (GINConv(nn.Sequential()), True, True),
        (GINConv(_Other(nn.Linear(3, 2))), True, True),
        (GINConv(nn.Linear(3, 2), aggr="max"), False, False),
        (GATConv(3, 2), True, True),
        (GATConv(3, 2, dropout=0.5), True, True),
        (GATConv(3, 2, aggr="max"), False, False),
        (GATConv(3, 2, edge_dim=1), True, False),
    ],
    ids=repr,
)
def test_a_layer_with_options_that_are_not_known_is_asked_itself(
    layer: nn.Module, can_toggle: bool, can_train: bool
) -> None:
    kind = LAYER_TYPES[type(layer)]
    assert (kind.toggles(layer), kind.trains(layer)) == (can_toggle, can_train)
