from __future__ import annotations

import pytest
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from glasshouse.graph.models.layer_types import LAYER_TYPES


class _Other(nn.Sequential):
    """A subclass, whose forward pass may be anything."""


@pytest.mark.parametrize(
    ("layer", "can_toggle", "can_batch"),
    [
        (GCNConv(3, 2), True, True),
        (GCNConv(3, 2, improved=True), False, True),
        (GCNConv(3, 2, normalize=False), False, True),
        (SGConv(3, 2, K=2, cached=True), False, True),
        (SAGEConv(3, 2, aggr="max"), True, True),
        (SAGEConv(3, 2, root_weight=False), True, True),
        (SAGEConv(3, 2, normalize=True), False, True),
        (GINConv(nn.Sequential(nn.Linear(3, 2), nn.ReLU())), True, True),
        (GINConv(nn.Sequential()), False, True),
        (GINConv(_Other(nn.Linear(3, 2))), False, True),
        (GINConv(nn.Linear(3, 2), aggr="max"), False, False),
        (GATConv(3, 2), True, True),
        (GATConv(3, 2, dropout=0.5), True, True),
        (GATConv(3, 2, aggr="max"), False, False),
        (GATConv(3, 2, edge_dim=1), False, False),
    ],
    ids=repr,
)
def test_a_layer_with_other_options_is_left_to_those_who_ask_it_as_a_black_box(
    layer: nn.Module, can_toggle: bool, can_batch: bool
) -> None:
    kind = LAYER_TYPES[type(layer)]
    assert (bool(kind.can_toggle(layer)), bool(kind.can_batch(layer))) == (can_toggle, can_batch)
