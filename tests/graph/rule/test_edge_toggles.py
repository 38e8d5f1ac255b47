"""The fast rule for edges against two passes over the whole graph for each answer."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphNorm, SAGEConv, SGConv

from glasshouse import InputError
from glasshouse.graph.rule.edge_toggles import toggle_edges
from tests.graph.random_graphs import CLASSES, FEATURES, random_cases, random_models


class Own(nn.Module):
    """A user's module: a layer that takes two steps, another one beside it, and a choice that no trace follows."""

    def __init__(self, *, traceable: bool) -> None:
        super().__init__()
        self.far, self.near = SGConv(FEATURES, 6, K=2), SAGEConv(FEATURES, 6)
        self.last = SAGEConv(6, CLASSES)
        self.traceable = traceable

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = (self.far(x, edge_index) + self.near(x, edge_index)).relu()
        if not self.traceable and float(hidden.sum()) > 1e9:
            return hidden  # type: ignore[no-any-return]
        return self.last(hidden, edge_index)  # type: ignore[no-any-return]


def candidates(data: Data, *, seed: int, most: int = 6) -> tuple[Data, Tensor]:
    """The graph without some of its pairs, and these with some that it does not join."""
    count, generator = int(data.num_nodes), torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, count, (2, 2 * most), generator=generator)
    pairs = torch.cat([data.edge_index[:, ::3][:, :most], drawn], dim=1).sort(dim=0).values
    pairs = pairs[:, pairs[0] != pairs[1]].unique(dim=1)[:, :most]
    known = {(a, b) for a, b in pairs.t().tolist()}
    keep = [i for i, (a, b) in enumerate(data.edge_index.t().tolist()) if not {(a, b), (b, a)} & known]
    return Data(x=data.x, edge_index=data.edge_index[:, keep], y=torch.arange(count) % CLASSES), pairs


def compared(models: list[nn.Module], data: Data, pairs: Tensor, *, seed: int) -> None:
    masks = torch.rand(2, pairs.shape[1], generator=torch.Generator().manual_seed(seed)) < 0.5
    fast, slow = (toggle_edges(models, data, masks, pairs, engine=name) for name in ("auto", "reference"))
    torch.testing.assert_close(fast, slow, atol=1e-8, rtol=1e-8)


@settings(max_examples=30, deadline=None)
@given(
    case=random_cases(),
    architecture=st.sampled_from(["gcn", "sage", "gat"]),
    layers=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def test_the_fast_rule_is_the_rule_as_written(case: object, architecture: str, layers: int, seed: int) -> None:
    data, pairs = candidates(case.data, seed=seed)  # type: ignore[attr-defined]
    compared(list(random_models(architecture, layers=layers, seed=seed)), data, pairs, seed=seed)


@pytest.mark.parametrize("traceable", [True, False])
@settings(max_examples=6, deadline=None)
@given(case=random_cases(), seed=st.integers(0, 9))
def test_a_module_of_a_users_own_is_toggled_exactly(traceable: bool, case: object, seed: int) -> None:
    data, pairs = candidates(case.data, seed=seed)  # type: ignore[attr-defined]
    torch.manual_seed(seed)
    compared([Own(traceable=traceable).double().eval()], data, pairs, seed=seed)


def test_a_model_that_looks_at_the_whole_graph_is_asked_about_it() -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm = SAGEConv(FEATURES, CLASSES), GraphNorm(CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.norm(self.layer(x, edge_index))  # type: ignore[no-any-return]

    torch.manual_seed(0)
    ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
    data = Data(x=torch.randn(6, FEATURES), edge_index=torch.cat([ring, ring.flip(0)], 1), y=torch.arange(6) % CLASSES)
    compared([Whole().eval()], data, torch.tensor([[0], [3]]), seed=0)


def test_candidates_that_the_graph_has_already_are_refused() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
    masks = torch.zeros(1, 1, dtype=torch.bool)
    for pair in ([[1], [0]], [[2], [2]]):
        with pytest.raises(InputError, match="pairs: a candidate"):
            toggle_edges([lambda x, edges: x], data, masks, torch.tensor(pair))
    with pytest.raises(InputError, match="nodes from 0 to 2"):
        toggle_edges([lambda x, edges: x], data, masks, torch.tensor([[0], [7]]))
