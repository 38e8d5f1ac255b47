from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.outputs import tensor_losses
from glasshouse.graph.rule.reference import reference_losses
from glasshouse_experiments.ego_nets import ego_losses
from tests.graph.random_graphs import Case, architectures, depths, random_cases, random_models, seeds


def neighbour_counts(x: Tensor, edge_index: Tensor) -> Tensor:
    """A black box of one hop: the logit of class 1 is the number of messages that a node receives."""
    received = torch.bincount(edge_index[1], minlength=len(x)).to(x.dtype)
    return torch.stack([torch.zeros_like(received), received], dim=1)


def line(size: int) -> Data:
    first = torch.arange(size - 1)
    edges = torch.stack([first, first + 1])
    return Data(
        x=torch.zeros(size, 1), edge_index=torch.cat([edges, edges.flip(0)], 1), y=torch.ones(size, dtype=torch.long)
    )


def loss_with(messages: int) -> float:
    return math.log1p(math.exp(-messages))


@pytest.mark.parametrize("member", [True, False])
def test_the_rule_written_out_by_hand_on_a_line(member: bool) -> None:
    """0 - 1 - 2 - 3 with 1 as the target: its own loss, plus what 0 and 2 gain from it."""
    mask = torch.tensor([[True, member, True, True]])
    gain_of_0 = loss_with(1) - loss_with(0)
    gain_of_2 = loss_with(2) - loss_with(1)
    signal = reference_losses([neighbour_counts], line(4), mask, torch.tensor([1]))
    assert signal.item() == pytest.approx(loss_with(2) + gain_of_0 + gain_of_2)


def test_neighbours_that_are_no_members_do_not_count() -> None:
    mask = torch.tensor([[False, True, True, True]])
    signal = reference_losses([neighbour_counts], line(4), mask, torch.tensor([1]))
    assert signal.item() == pytest.approx(loss_with(1) + loss_with(2) - loss_with(1))


def test_an_isolated_node_has_its_own_loss_alone() -> None:
    data = line(3)
    model = random_models("gcn", layers=2, count=1)[0]
    data.x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    signal = reference_losses([model], data, torch.tensor([[True, False, False]]), torch.tensor([0]))
    alone = tensor_losses(model(data.x, torch.zeros(2, 0, dtype=torch.long)), data.y)[0]
    torch.testing.assert_close(signal[0, 0, 0], alone)


def test_the_whole_affected_set_reaches_further_than_the_neighbourhood_for_gcn_only() -> None:
    data, mask, node = line(6), torch.ones(1, 6, dtype=torch.bool), torch.tensor([0])
    data.x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for architecture, further in (("gcn", True), ("gat", False), ("sage", False)):
        models = random_models(architecture, layers=2, count=1)
        near, far = (reference_losses(models, data, mask, node, hops=hops) for hops in ("model", "affected"))
        assert ((near - far).abs().item() > 1e-6) == further


@settings(max_examples=12, deadline=None)
@given(case=random_cases(), architecture=architectures, layers=depths, seed=seeds)
def test_ego_nets_give_the_full_graphs_numbers(case: Case, architecture: str, layers: int, seed: int) -> None:
    models = random_models(architecture, layers=layers, count=1, seed=seed)
    for hops in ("model", "affected"):
        full, ego = (
            rule(models, case.data, case.masks, case.nodes[:4], hops=hops) for rule in (reference_losses, ego_losses)
        )
        torch.testing.assert_close(ego, full, atol=1e-7, rtol=0)


def test_models_come_back_in_training_mode() -> None:
    model = random_models("gcn", layers=1, count=1)[0].train()
    data = line(2)
    data.x = torch.zeros(2, 5, dtype=torch.float64)
    reference_losses([model], data, torch.ones(1, 2, dtype=torch.bool), torch.tensor([0]))
    assert model.training
