"""Rows that turn out not to change are not followed further, and no number depends on it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

from glasshouse.graph import toggle_losses
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.incremental import program
from glasshouse.graph.rule.incremental.balls import Ball, add_ring, draw_rings
from glasshouse.graph.rule.incremental.graph import coalesce, mask_graph
from glasshouse.graph.rule.incremental.program import changed_balls, first_that_drops, lower
from glasshouse.graph.rule.question import ask
from tests.graph.random_graphs import Case, random_cases, random_models
from tests.graph.simple_graphs import simple_graph


@given(case=random_cases())
def test_rings_that_are_added_one_by_one_are_those_drawn_at_once(case: Case) -> None:
    graph = mask_graph(coalesce(case.data.edge_index, int(case.data.num_nodes), torch.float64), case.masks)
    targets = torch.arange(len(graph.members))
    at_once, grown = (draw_rings(graph, targets, radius=radius) for radius in (2, 0))
    for hops in (1, 2):
        add_ring(grown)
        assert torch.equal(grown.balls[hops].keys, at_once.balls[hops].keys)
        assert torch.equal(grown.balls[hops].degree_change, at_once.balls[hops].degree_change)


def drops(architecture: str, layers: int, data: Data) -> int | None:
    models = random_models(architecture, layers=layers, count=2, dtype=torch.float32)
    question = ask(data, torch.ones(1, int(data.num_nodes), dtype=torch.bool), torch.tensor([0]))
    with torch.no_grad():
        return first_that_drops(changed_balls(lower(profile_models(models, data), question), radius=layers))


@pytest.mark.parametrize(
    ("architecture", "first"), [("sage", 0), ("gin", 0), ("gat", 0), ("sage-mean", 2), ("gcn", None)]
)
def test_rows_can_be_dropped_where_no_later_layer_counts_its_senders(architecture: str, first: int | None) -> None:
    """A GCN's messages change one hop further at once, so its balls are no chain."""
    assert drops(architecture, 3, simple_graph(size=20, edges=40, seed=0)) == first


def test_a_maximum_drops_rows_and_the_signals_are_those_of_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple_graph(size=60, edges=150, seed=1, hub=True)
    data.x = data.x.double()
    models = random_models("sage", layers=3, count=2)
    masks, nodes = torch.rand(2, 60, generator=torch.Generator().manual_seed(0)) < 0.7, torch.arange(60)
    dropped: list[int] = []
    only = Ball.only

    def counted(ball: Ball, rows: Any) -> Ball:
        dropped.append(int((~rows).sum()))
        return only(ball, rows)

    monkeypatch.setattr(Ball, "only", counted)
    found = toggle_losses(models, data, masks, nodes, engine="layered")
    assert sum(dropped) > 0
    wanted = toggle_losses(models, data, masks, nodes[:5], engine="reference")
    torch.testing.assert_close(found[:, :, :5], wanted, atol=1e-9, rtol=1e-9)
    monkeypatch.setattr(program, "first_that_drops", lambda placed: None)
    torch.testing.assert_close(toggle_losses(models, data, masks, nodes, engine="layered"), found, atol=1e-9, rtol=0)
