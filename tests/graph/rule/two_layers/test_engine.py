from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

from glasshouse.graph.models.networks import GNN, build_gnn
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.toggling import toggle_answers
from glasshouse.graph.rule.two_layers.engine import compiled_toggles, supports
from tests.graph.random_graphs import Case, random_models, seeds
from tests.graph.simple_graphs import KERNELS, exact, in_float64, simple_cases, simple_graph, unmeasured

BOTH: tuple[Hops, ...] = ("model", "affected")


@pytest.mark.parametrize("architecture", KERNELS)
@settings(max_examples=20, deadline=None)
@given(case=simple_cases(), seed=seeds)
def test_kernels_equal_the_rule_as_written(architecture: str, case: Case, seed: int) -> None:
    """All nodes are toggled; every second one is held against the rule, the last one, which is isolated, too."""
    models, some = random_models(architecture, layers=2, seed=seed, dtype=torch.float32), case.nodes.flip(0)[::2]
    assert supports(unmeasured(models), case.data)
    doubled, data = in_float64(models, case.data)
    profiled = profile_models(doubled, data)
    for hops in BOTH:
        fast = compiled_toggles(unmeasured(models), case.data, case.masks, case.nodes, hops=hops)
        exact = toggle_answers(profiled, data, case.masks, some, engine="reference", hops=hops)
        for found, wanted in zip(fast, exact, strict=True):
            np.testing.assert_allclose(found[:, :, some].numpy(), wanted.numpy(), atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("architecture", KERNELS)
def test_a_dense_graph_with_a_hub_is_exact(architecture: str, words: bool) -> None:
    """Most of the largest neighbours, and most of a softmax, then change at once."""
    data = simple_graph(size=60, edges=250, seed=1, hub=True, words=words)
    masks = torch.rand(2, 60, generator=torch.Generator().manual_seed(0)) < 0.7
    models = random_models(architecture, layers=2, count=2, dtype=torch.float32)
    nodes = torch.tensor([0, 1, 2, 30, 58, 59])
    fast = compiled_toggles(unmeasured(models), data, masks, nodes).signal.numpy()
    np.testing.assert_allclose(fast, exact(models, data, masks, nodes).numpy(), atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize("architecture", KERNELS)
def test_a_path_whose_ends_lose_their_only_neighbour_is_exact(architecture: str) -> None:
    data = simple_graph(size=5, edges=0, seed=3)
    data.edge_index = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 4], [1, 2, 3, 4, 0, 1, 2, 3]])
    masks = torch.tensor([[True] * 5, [True, True, False, True, True]])
    models = random_models(architecture, layers=2, count=2, dtype=torch.float32)
    fast = compiled_toggles(unmeasured(models), data, masks, torch.arange(5)).signal.numpy()
    np.testing.assert_allclose(fast, exact(models, data, masks, torch.arange(5)).numpy(), atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize("architecture", KERNELS)
def test_the_numbers_do_not_depend_on_threads_or_on_the_company_of_other_nodes(architecture: str) -> None:
    data = simple_graph(size=40, edges=80, seed=2, hub=True)
    masks = torch.rand(3, 40, generator=torch.Generator().manual_seed(0)) < 0.5
    models = random_models(architecture, layers=2, count=2, dtype=torch.float32)
    many = compiled_toggles(unmeasured(models), data, masks, torch.arange(40), threads=2).signal.numpy()
    few = compiled_toggles(unmeasured(models), data, masks, torch.tensor([7, 3, 7]), threads=1).signal.numpy()
    assert np.array_equal(few, many[:, :, [7, 3, 7]])


def test_attention_with_scores_beyond_float32_is_exact() -> None:
    """Scores spread over hundreds make weights that only float64 can hold."""
    data = simple_graph(size=20, edges=40, seed=3)
    masks = torch.rand(2, 20, generator=torch.Generator().manual_seed(0)) < 0.6
    models = random_models("gat", layers=2, count=2, dtype=torch.float32)
    for model in models:
        for name, parameter in model.named_parameters():
            if "att_" in name:
                parameter.data *= 60
    fast = compiled_toggles(unmeasured(models), data, masks, torch.arange(20)).signal.numpy()
    np.testing.assert_allclose(fast, exact(models, data, masks, torch.arange(20)).numpy(), atol=1e-3, rtol=1e-4)


def test_any_number_of_heads_works() -> None:
    data = simple_graph(size=12, edges=20, seed=4)
    masks = torch.rand(2, 12, generator=torch.Generator().manual_seed(0)) < 0.6
    models = [GNN([GATConv(5, 3, heads=2), GATConv(6, 3, heads=3, concat=False, bias=False)]) for _ in range(2)]
    assert supports(unmeasured(models), data)
    fast = compiled_toggles(unmeasured(models), data, masks, torch.arange(12)).signal.numpy()
    np.testing.assert_allclose(fast, exact(models, data, masks, torch.arange(12)).numpy(), atol=1e-4, rtol=1e-6)


def with_self_loop(data: Data) -> Data:
    loop = torch.tensor([[0], [0]])
    return Data(x=data.x, y=data.y, edge_index=torch.cat([data.edge_index, loop], dim=1))


@pytest.mark.parametrize("architecture", ["gat", "gcn"])
def test_self_loops_count_as_the_layers_count_them(architecture: str) -> None:
    data = with_self_loop(simple_graph(size=8, edges=12, seed=5))
    masks = torch.ones(1, 8, dtype=torch.bool)
    models = random_models(architecture, layers=2, count=2, dtype=torch.float32)
    assert supports(unmeasured(models), data)
    fast = compiled_toggles(unmeasured(models), data, masks, torch.arange(8)).signal.numpy()
    np.testing.assert_allclose(fast, exact(models, data, masks, torch.arange(8)).numpy(), atol=1e-4, rtol=1e-6)


def test_what_the_kernels_do_not_know_is_refused() -> None:
    data = simple_graph(size=8, edges=12, seed=5)
    gcn, deep = (random_models("gcn", layers=layers, dtype=torch.float32) for layers in (2, 3))
    assert supports(unmeasured(gcn), data)
    assert not supports(unmeasured(deep), data)
    assert not supports(unmeasured(random_models("gcn", layers=2)), data), "float64"
    assert not supports(unmeasured(random_models("sage-mean", layers=2, dtype=torch.float32)), data)
    assert not supports(unmeasured([gcn[0], build_gnn("gcn", features=5, hidden=16, classes=3)]), data), "shapes differ"
    assert not supports(unmeasured([lambda x, _: x]), data)
    assert not supports(unmeasured([]), data)
    assert not supports(unmeasured(random_models("sage", layers=2, dtype=torch.float32)), with_self_loop(data))
    one_way = Data(x=data.x, y=data.y, edge_index=torch.tensor([[0], [1]]))
    twice = Data(x=data.x, y=data.y, edge_index=torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]]))
    assert not supports(unmeasured(gcn), one_way)
    assert not supports(unmeasured(gcn), twice)
