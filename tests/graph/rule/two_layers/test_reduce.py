from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, BatchNorm, GATConv, GCNConv, GraphSAGE, LayerNorm, SAGEConv

from glasshouse.graph.models.networks import GNN
from glasshouse.graph.models.profile import evaluation_mode, profile_models
from glasshouse.graph.rule.engines import Stack
from glasshouse.graph.rule.question import ask
from glasshouse.graph.rule.toggling import toggle_losses
from glasshouse.graph.rule.two_layers.engine import Compiled
from glasshouse.graph.rule.two_layers.reduce import reduced
from glasshouse.graph.sampling.gibbs import gibbs_masks
from tests.graph.test_zoo import graph, rule_as_written
from tests.graph.zoo import CLASSES, FEATURES

HIDDEN = 8


class Two(nn.Module):
    """Two layers, with whatever the user does after the first and after the second."""

    def __init__(
        self,
        layer: Callable[[int, int], nn.Module],
        between: Callable[[], Any] = lambda: F.relu,
        end: Callable[[], Any] = nn.Identity,
    ) -> None:
        super().__init__()
        self.first, self.second = layer(FEATURES, HIDDEN), layer(HIDDEN, CLASSES)
        self.between, self.end = between(), end()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.between(self.first(F.dropout(x, 0.2, self.training), edge_index))
        return self.end(self.second(F.dropout(x, 0.5, self.training), edge_index))  # type: ignore[no-any-return]


def maximum(width: int, out: int) -> SAGEConv:
    return SAGEConv(width, out, aggr="max")


def layers(layer: Callable[..., Any], *parts: Callable[[], nn.Module], **options: Any) -> Callable[[], nn.Module]:
    return lambda: Two(layer, lambda: nn.Sequential(*[part() for part in parts]), **options)


def norm() -> nn.Module:
    return BatchNorm(HIDDEN)  # type: ignore[no-any-return]


PYG = {"in_channels": FEATURES, "hidden_channels": HIDDEN, "out_channels": CLASSES, "num_layers": 2, "dropout": 0.3}

REDUCE: dict[str, Callable[[], nn.Module]] = {
    "two GCNConv": lambda: Two(GCNConv),
    "without bias": lambda: Two(lambda a, b: GCNConv(a, b, bias=False)),
    "Tensor.relu and log_softmax": lambda: Two(
        GCNConv, lambda: lambda x: x.relu(), lambda: lambda x: x.log_softmax(-1)
    ),
    "torch.relu, F.log_softmax": lambda: Two(maximum, lambda: torch.relu, lambda: lambda x: F.log_softmax(x, dim=1)),
    "ReLU in place, LogSoftmax": layers(GATConv, lambda: nn.ReLU(inplace=True), end=lambda: nn.LogSoftmax(dim=1)),
    "BatchNorm": layers(GCNConv, norm, nn.ReLU, nn.Dropout),
    "BatchNorm of a maximum": layers(maximum, norm, nn.ReLU),
    "BatchNorm1d, no bias": layers(lambda a, b: GCNConv(a, b, bias=False), lambda: nn.BatchNorm1d(HIDDEN), nn.ReLU),
    "two BatchNorm, one not affine": layers(GCNConv, norm, lambda: nn.BatchNorm1d(HIDDEN, affine=False), nn.ReLU),
    "BatchNorm at the end": lambda: Two(GCNConv, end=lambda: nn.BatchNorm1d(CLASSES)),
    "PyG GCN": lambda: GCN(**PYG),
    "PyG GCN with BatchNorm": lambda: GCN(**PYG, norm="batch"),
    "PyG GraphSAGE": lambda: GraphSAGE(**PYG, aggr="max"),
    "PyG GAT": lambda: GAT(**PYG, heads=2),
}

DO_NOT: dict[str, Callable[[], nn.Module]] = {
    "ELU": layers(GCNConv, nn.ELU),
    "no activation": layers(GCNConv, nn.Identity),
    "GAT with BatchNorm": layers(GATConv, norm, nn.ReLU),
    "BatchNorm after the ReLU": layers(GCNConv, nn.ReLU, norm),
    "BatchNorm without statistics": layers(GCNConv, lambda: nn.BatchNorm1d(HIDDEN, track_running_stats=False), nn.ReLU),
    "LayerNorm": layers(GCNConv, lambda: LayerNorm(HIDDEN, mode="node"), nn.ReLU),
    "a linear map between": layers(GCNConv, nn.ReLU, lambda: nn.Linear(HIDDEN, HIDDEN)),
    "softmax": lambda: Two(GCNConv, end=lambda: lambda x: x.softmax(-1)),
    "log_softmax over nodes": lambda: Two(GCNConv, end=lambda: lambda x: x.log_softmax(0)),
    "a mean": lambda: Two(lambda a, b: SAGEConv(a, b, aggr="mean")),
    "mixed layers": lambda: Two(lambda a, b: GCNConv(a, b) if b == CLASSES else maximum(a, b)),
    "jumping knowledge": lambda: GCN(**PYG, jk="cat"),
    "three layers": lambda: GCN(**{**PYG, "num_layers": 3}),
    "one layer": lambda: GCN(**{**PYG, "num_layers": 1}),
    "a ReLU at the end": lambda: Two(GCNConv, end=nn.ReLU),
}


def made(make: Callable[[], nn.Module], count: int = 2) -> list[nn.Module]:
    """Models with random weights, and BatchNorms with random statistics."""
    torch.manual_seed(3)
    models = [make() for _ in range(count)]
    for part in (part for model in models for part in model.modules()):
        if isinstance(part, nn.BatchNorm1d) and part.running_mean is not None and part.running_var is not None:
            part.running_mean.normal_()
            part.running_var.uniform_(0.2, 3)
            if part.affine:
                nn.init.normal_(part.weight)
                nn.init.normal_(part.bias)
    return models


def asked_of(models: list[nn.Module], data: Data) -> bool:
    """Whether the compiled engine takes them."""
    with evaluation_mode(models):
        question = ask(data, torch.ones(1, 24, dtype=torch.bool), torch.tensor([0]))
        return Compiled().supports(Stack(profile_models(models, data)), question)


@pytest.mark.parametrize("name", REDUCE)
def test_a_module_that_reduces_gets_the_kernels_and_they_equal_the_rule_as_written(name: str) -> None:
    data = graph(4, dtype=torch.float32)
    models = made(REDUCE[name])
    before = copy.deepcopy([model.state_dict() for model in models])
    assert asked_of(models, data)
    torch.manual_seed(5)
    masks, nodes = torch.rand(2, 24) < 0.6, torch.randperm(24)[:5]
    found = toggle_losses(models, data, masks, nodes, engine="compiled")
    with evaluation_mode(models):
        wanted = [
            [[rule_as_written(model, data, mask, node, 2) for node in nodes.tolist()] for mask in masks]
            for model in models
        ]
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64), atol=1e-4, rtol=0)
    for model, state in zip(models, before, strict=True):  # folding works on copies
        assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", DO_NOT)
def test_a_module_that_does_something_else_does_not_get_the_kernels(name: str) -> None:
    assert not asked_of(made(DO_NOT[name]), graph(4, dtype=torch.float32))


class Weighted(nn.Module):
    """Two GCNConv that use weights of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        x = self.first(x, edge_index, edge_weight).relu()
        return self.second(x, edge_index, edge_weight)  # type: ignore[no-any-return]


def test_a_module_that_uses_edge_weights_gets_the_kernels_only_if_the_graph_has_none() -> None:
    data = graph(4, dtype=torch.float32)
    assert asked_of(made(Weighted), data)
    data.edge_weight = torch.rand(data.edge_index.shape[1])
    assert not asked_of(made(Weighted), data)


def test_a_stated_reach_beyond_two_steps_is_kept_which_the_kernels_cannot() -> None:
    models: list[Any] = made(REDUCE["two GCNConv"])
    for model in models:
        model.hops = 3
    assert not asked_of(models, graph(4, dtype=torch.float32))


def test_chains_run_on_the_kernels_of_users_modules() -> None:
    data = graph(4, dtype=torch.float32)
    models = made(REDUCE["BatchNorm"], count=3)
    with evaluation_mode(models):
        twins = [reduced(model) for model in profile_models(models, data)]
    ours = [GNN(list(twin)) for twin in twins if twin is not None]
    for model in models:
        model.train()  # as it was after its training; a chain puts it in evaluation mode
    (found, _), (wanted, _) = (gibbs_masks(group, data, chains=4, passes=2) for group in (models, ours))
    assert (found == wanted).all()
    assert all(model.training for model in models)
