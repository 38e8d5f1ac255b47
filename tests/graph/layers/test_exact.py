"""Every layer type that can be toggled, with its options: equal to the rule as written, and to the layer itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.graph import toggle_losses
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.incremental.any_layer import Unknown
from glasshouse.graph.rule.incremental.operations import MessageOperation
from glasshouse.graph.rule.incremental.program import lower
from glasshouse.graph.rule.question import ask
from tests.graph.layers.cases import CASES, CLASSES, FEATURES, HIDDEN, TwoLayers, made_models, messy_graph

ASKED_THEMSELVES = {  # no type, or edge values that the type does not understand
    "SAGEConv std",
    "SimpleConv root",
    "GraphConv weights max",
    "GraphConv gated",
    "GCNConv gated",
    "ChebConv weights",
    "GATConv largest features",
    "RGCNConv bases",
    "GENConv powermean",
}
BOTH_WAYS = {name for name in CASES if name.startswith("ChebConv")} | {
    "GCNConv weights",
    "TAGConv",
    "GINEConv",
    "GATConv features",
    "TransformerConv",
    "GCN2Conv",
    "FAConv",
    "RGCNConv",
}
# one for each class and each kind of values: what the layer computes itself does not know its options either
TWINS = set({(name.split()[0], values): name for name, (_, values) in reversed(CASES.items())}.values())
SINGLE = ("GCNConv weights without loops", "GATv2Conv features", "TransformerConv beta", "GINEConv", "SAGEConv project")


def questions(seed: int) -> tuple[Tensor, Tensor]:
    return torch.rand(2, 12, generator=torch.Generator().manual_seed(seed)) < 0.6, torch.arange(12)


def equals_the_rule(
    found: Tensor, models: Sequence[Any], data: Data, masks: Tensor, *, close: float, some: Sequence[int] = (0, 3, 7)
) -> None:
    """Three targets, which are enough where all of them equal those of the twin."""
    wanted = toggle_losses(models, data, masks, torch.tensor(some), engine="reference")
    torch.testing.assert_close(found[:, :, some], wanted, rtol=close, atol=close)


@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_toggled_as_the_rule_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, values = CASES[name]
    data = messy_graph(len(name), both_ways=name in BOTH_WAYS)
    raw = made_models(lambda: TwoLayers(make, values))
    models = profile_models(raw, data)
    masks, nodes = questions(len(name))
    memory = 20_000 if name in BOTH_WAYS else None  # some in several pieces
    found = toggle_losses(models, data, masks, nodes, engine="layered", memory=memory)
    close = 1e-6 if name == "ClusterGCNConv" else 1e-9  # it divides by degrees in single precision
    with torch.no_grad():
        steps = lower(models, ask(data, masks, nodes))
    kinds = {type(one.layer) for one in steps if isinstance(one, MessageOperation)}
    assert (Unknown in kinds) == (name in ASKED_THEMSELVES)
    if name not in TWINS:
        equals_the_rule(found, models, data, masks, close=close, some=(0, 2, 3, 5, 7, 11))
        return
    equals_the_rule(found, models, data, masks, close=close)
    # the twin knows no type: every changed row is computed by the layer itself
    monkeypatch.setattr("glasshouse.graph.programs.program.LAYER_TYPES", {})
    twin = toggle_losses(raw[:1], data, masks, nodes, engine="layered")
    torch.testing.assert_close(found[:1], twin, rtol=close, atol=close)


@pytest.mark.parametrize(
    "name", ["GCNConv weights", "SAGEConv max", "GATv2Conv features", "TransformerConv", "GINEConv"]
)
def test_a_node_without_edges_can_be_the_only_target(name: str) -> None:
    make, values = CASES[name]
    data = messy_graph(2, both_ways=False)
    models = made_models(lambda: TwoLayers(make, values))
    masks, alone = questions(2)[0], torch.tensor([11])
    found = toggle_losses(models, data, masks, alone, engine="layered")
    wanted = toggle_losses(models, data, masks, alone, engine="reference")
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SINGLE)
def test_a_layer_is_toggled_in_single_precision_too(name: str) -> None:
    make, values = CASES[name]
    data = messy_graph(3 + len(name), both_ways=True, dtype=torch.float32)
    models = made_models(lambda: TwoLayers(make, values), dtype=torch.float32)
    masks, nodes = questions(len(name))
    found = toggle_losses(models, data, masks, nodes, engine="layered")
    equals_the_rule(found, models, data, masks, close=1e-4)


def test_a_layer_that_needs_edges_both_ways_is_asked_about_whole_graphs_without_them_and_back_again() -> None:
    make, values = CASES["ChebConv"]
    models = made_models(lambda: TwoLayers(make, values))
    masks, nodes = questions(1)
    for both_ways in (True, False, True):
        data = messy_graph(4, both_ways=both_ways)
        equals_the_rule(toggle_losses(models, data, masks, nodes), models, data, masks, close=1e-9)
        profile = profile_models(models, data)[0].profile
        assert profile.everywhere != both_ways
        assert (profile.program is not None) == both_ways
        assert any("out-degrees" in note for note in profile.notes) != both_ways


@pytest.mark.parametrize("name", ["GCNConv weights without loops", "TAGConv weights", "GraphConv weights mean"])
def test_weights_of_very_different_size_lose_no_digits(name: str) -> None:
    """A sum in float32 that loses a message 10^6 times the others has none of its digits left."""
    make, values = CASES[name]
    data = messy_graph(5, both_ways=True, dtype=torch.float32)
    drawn = torch.rand(len(data.edge_weight), generator=torch.Generator().manual_seed(1))
    data.edge_weight = 10 ** (8 * drawn - 6)
    models = made_models(lambda: TwoLayers(make, values), dtype=torch.float32)
    masks, nodes = questions(1)
    found = toggle_losses(models, data, masks, nodes, engine="layered")
    equals_the_rule(found, models, data, masks, close=1e-4)


@pytest.mark.parametrize("name", ["ResGatedGraphConv without root", "FiLMConv add"])
def test_an_activation_that_writes_into_sums_does_not_change_what_is_kept(name: str) -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            make, _ = CASES[name]
            self.first, self.last = make(FEATURES, HIDDEN), make(HIDDEN, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.last(torch.relu(self.first(x, edge_index)), edge_index)  # type: ignore[no-any-return]

    data, models, masks = messy_graph(6, both_ways=True), made_models(Cut), questions(6)[0]
    some = torch.tensor([0, 3, 7])
    found = toggle_losses(models, data, masks, some, engine="layered")
    wanted = toggle_losses(models, data, masks, some, engine="reference")
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
