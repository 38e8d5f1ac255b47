from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

from glasshouse.graph.models.networks import GNN, NETWORKS
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggling import toggle_losses
from tests.graph.random_graphs import CLASSES, FEATURES, Case, depths, random_cases, random_models, seeds

BOTH: tuple[Hops, ...] = ("model", "affected")


@pytest.mark.parametrize("architecture", sorted(NETWORKS.names()))
@settings(max_examples=12, deadline=None)
@given(case=random_cases(), layers=depths, seed=seeds)
def test_toggling_equals_the_rule_as_written(architecture: str, case: Case, layers: int, seed: int) -> None:
    """All nodes are toggled; every second one is held against the rule, the last one, which is isolated, too."""
    models, some = (
        profile_models(random_models(architecture, layers=layers, seed=seed), case.data),
        case.nodes.flip(0)[::2],
    )
    for hops in BOTH:
        slow = reference_losses(models, case.data, case.masks, some, hops=hops)
        fast = toggle_losses(models, case.data, case.masks, case.nodes, engine="layered", hops=hops)
        torch.testing.assert_close(fast[:, :, some], slow, atol=1e-7, rtol=0)


def hub_case(size: int = 60) -> Case:
    """A dense graph around two hubs: many rows change at once, and most of a maximum's largest senders with them."""
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(0, size, (2, 5 * size), generator=generator)
    spokes = torch.arange(2, size)
    hubs = [torch.stack([torch.full_like(spokes, hub), spokes]) for hub in (0, 1)]
    edges = torch.cat([edges, *hubs], dim=1)
    data = Data(
        x=torch.rand(size, FEATURES, generator=generator),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        y=torch.randint(0, CLASSES, (size,), generator=generator),
    )
    return Case(
        data=data, masks=torch.rand(2, size, generator=generator) < 0.7, nodes=torch.tensor([0, 1, 2, 3, size - 1])
    )


@pytest.mark.parametrize("architecture", sorted(NETWORKS.names()))
def test_hubs_are_exact(architecture: str) -> None:
    case = hub_case()
    models = profile_models(random_models(architecture, layers=2, dtype=torch.float32), case.data)
    slow = reference_losses(models, case.data, case.masks, case.nodes)
    fast = toggle_losses(models, case.data, case.masks, case.nodes, engine="layered")
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("architecture", sorted(NETWORKS.names()))
def test_the_answer_does_not_depend_on_the_memory(architecture: str) -> None:
    """One byte is never enough: the work is then done one model, one mask and one target at a time."""
    case = hub_case(12)
    models = profile_models(random_models(architecture, layers=2, count=2, dtype=torch.float32), case.data)
    roomy, tight = (
        toggle_losses(models, case.data, case.masks, case.nodes[:4], engine="layered", memory=memory)
        for memory in (2**30, 1)
    )
    torch.testing.assert_close(tight, roomy, atol=1e-5, rtol=1e-5)


def test_attention_survives_scores_that_would_overflow() -> None:
    case, models = hub_case(30), random_models("gat", layers=2, dtype=torch.float32)
    for model in models:
        model.get_parameter("convolutions.0.att_src").data *= 300
    slow = reference_losses(models, case.data, case.masks, case.nodes[:4])
    fast = toggle_losses(models, case.data, case.masks, case.nodes[:4], engine="layered")
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("hops", BOTH)
def test_layers_of_different_kinds_may_follow_each_other(hops: Hops) -> None:
    case = hub_case(30)
    torch.manual_seed(0)
    models = [
        GNN([SAGEConv(FEATURES, 8, aggr="max"), GCNConv(8, CLASSES)]),
        GNN([GCNConv(FEATURES, 8), SAGEConv(8, CLASSES, aggr="max")]),
    ]
    slow = reference_losses(models, case.data, case.masks, case.nodes[:4], hops=hops)
    fast = toggle_losses(models, case.data, case.masks, case.nodes[:4], engine="layered", hops=hops)
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=0)
