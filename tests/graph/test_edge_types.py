"""Kinds of edges: models that look at them are asked exactly, a node with all its typed edges at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import FastRGCNConv, FiLMConv, RGATConv, RGCNConv

from glasshouse import InputError
from glasshouse.graph import GNNTrainer, audit, citation_graph, toggle_losses
from glasshouse.graph.data.checking import check_graph
from glasshouse.graph.models.profile import profile_models
from tests.graph.random_graphs import CLASSES, FEATURES
from tests.graph.simple_graphs import simple_graph

KINDS = 3


class Typed(nn.Module):
    """Two layers of a kind."""

    def __init__(self, layer: Any, features: int = FEATURES, classes: int = CLASSES) -> None:
        super().__init__()
        self.first, self.second = layer(features, 6, KINDS), layer(6, classes, KINDS)

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        found: Tensor = self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)
        return found


class Whole(Typed):
    """The same, called with the whole graph."""

    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index, data.edge_type)


ZOO: dict[str, Any] = {
    "RGCN": lambda: Typed(RGCNConv),
    "fast RGCN": lambda: Typed(FastRGCNConv),
    "RGAT": lambda: Typed(RGATConv),
    "FiLM": lambda: Typed(FiLMConv),
    "RGCN of data": lambda: Whole(RGCNConv),
}


def typed_graph(**parts: Any) -> Data:
    """Random kinds; some pairs have an edge of two kinds."""
    data = simple_graph(**parts)
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, ::3]], dim=1)
    data.edge_type = torch.randint(KINDS, (data.edge_index.shape[1],), generator=torch.Generator().manual_seed(0))
    return data


def by_hand(model: nn.Module, data: Data, mask: Tensor, node: int) -> float:
    """Eq. (6): the rule written out."""
    losses = []
    for inside in (True, False):
        present = mask.clone()
        present[node] = inside
        kept = present[data.edge_index].all(0)
        edges, kinds = data.edge_index[:, kept], data.edge_type[kept]
        with torch.no_grad():
            given = (Data(x=data.x, edge_index=edges, edge_type=kinds),)
            logits = model(*(given if isinstance(model, Whole) else (data.x, edges, kinds))).double()
        losses.append(nn.functional.cross_entropy(logits, data.y, reduction="none"))
        if inside:
            near = torch.zeros(len(mask), dtype=torch.bool)
            near[node] = True
            for _ in range(2):
                near[edges[1, near[edges[0]]]] = True
    near[node] = False
    return float(losses[0][node] + (losses[0] - losses[1])[near & mask].sum())


@pytest.mark.parametrize("name", ZOO)
def test_a_node_is_toggled_with_all_its_typed_edges(name: str) -> None:
    data = typed_graph(size=14, edges=20, seed=5)
    torch.manual_seed(0)
    model = ZOO[name]().eval()
    masks = torch.rand(2, 14, generator=torch.Generator().manual_seed(1)) < 0.6
    profiled = profile_models([model], data)
    assert profiled[0].profile.program is not None  # kinds of edges are values of edges: no black box
    wanted = [[by_hand(model, data, mask, node) for node in range(14)] for mask in masks]
    for engine in ("layered", "packed"):
        found = toggle_losses(profiled, data, masks, torch.arange(14), engine=engine)
        assert np.allclose(found[0].numpy(), wanted, atol=1e-5), engine


def test_models_of_typed_edges_are_trained_and_audited() -> None:
    data = citation_graph(nodes=80, classes=3)
    data.x = data.x[:, :60]  # each net of a black box holds its nodes' features
    data.edge_type = torch.arange(data.edge_index.shape[1]) % KINDS
    features = data.x.shape[1]
    trainer = GNNTrainer(model=lambda: Typed(RGCNConv, features, 3), epochs=40, device="cpu")
    result = audit(data, trainer=trainer, attacks=["base", "g-base", "g-stacked"], shadows=4, progress=False)
    assert (result.table()["auc"] > 0.55).all()


@pytest.mark.parametrize(
    "kinds", [torch.rand(4), torch.zeros(4, 2, dtype=torch.long), torch.zeros(3, dtype=torch.long)]
)
def test_kinds_are_whole_numbers_one_per_edge(kinds: Tensor) -> None:
    data = Data(x=torch.eye(2), edge_index=torch.zeros(2, 4, dtype=torch.long), y=torch.tensor([0, 1]), edge_type=kinds)
    with pytest.raises(InputError, match="data.edge_type: has "):
        check_graph(data)
