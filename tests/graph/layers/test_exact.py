"""Every layer type that can be toggled, with its options: equal to the rule as written, and to the layer itself."""

from __future__ import annotations

import pytest
import torch

from glasshouse.graph import toggle_losses
from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.layer_types import LAYER_TYPES
from glasshouse.graph.rule.question import ask
from glasshouse.graph.rule.toggle.layers.unknown import Unknown
from glasshouse.graph.rule.toggle.lowering import MessageOperation, lower
from tests.graph.layers.cases import CASES, TwoLayers, made_models, messy_graph

ASKED_THEMSELVES = {
    "SAGEConv std",
    "GraphConv weights max",
    "GraphConv gated",
    "GCNConv gated",
    "ChebConv weights",
    "GATConv largest features",
}


def questions(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(2, 12, generator=torch.Generator().manual_seed(seed)) < 0.6, torch.arange(12)


@pytest.mark.parametrize("directed", [False, True], ids=["both ways", "one way"])
@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_toggled_as_the_rule_says(name: str, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    make, values = CASES[name]
    data = messy_graph(len(name), directed=directed)
    models = made_models(lambda: TwoLayers(make, values))
    masks, nodes = questions(len(name))
    found = toggle_losses(models, data, masks, nodes)
    wanted = toggle_losses(models, data, masks, nodes, engine="reference")
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
    if name.startswith("ChebConv") and directed:
        assert manners_of(models[0]).everywhere
        return
    kinds = {type(one.layer) for one in lower(models, ask(data, masks, nodes)) if isinstance(one, MessageOperation)}
    assert (Unknown in kinds) == (name in ASKED_THEMSELVES)
    # a twin that knows no type: every changed row is computed by the layer itself
    monkeypatch.setattr("glasshouse.graph.rule.toggle.lowering.LAYER_TYPES", {})
    twin = toggle_losses(models, data, masks, nodes, engine="layered")
    torch.testing.assert_close(twin, wanted, rtol=1e-9, atol=1e-9)
    assert LAYER_TYPES


@pytest.mark.parametrize("name", [name for name in CASES if name not in ASKED_THEMSELVES])
def test_a_layer_is_toggled_in_single_precision_too(name: str) -> None:
    make, values = CASES[name]
    data = messy_graph(3 + len(name), directed=False, dtype=torch.float32)
    models = made_models(lambda: TwoLayers(make, values), dtype=torch.float32)
    masks, nodes = questions(len(name))
    found = toggle_losses(models, data, masks, nodes, hops="affected", engine="layered")
    wanted = toggle_losses(models, data, masks, nodes, hops="affected", engine="reference")
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
