from __future__ import annotations

import logging

import pytest
import torch
from torch import Tensor

from glasshouse.graph.rule import black_box
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggling import toggle_answers, toggle_losses
from tests.graph.random_graphs import CLASSES
from tests.graph.simple_graphs import simple_graph


class Centred:
    """Every answer depends on every node."""

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return (x - x.mean(0))[:, :CLASSES]


def test_the_sum_runs_over_all_members_where_answers_depend_on_all_nodes() -> None:
    data = simple_graph(size=7, edges=9, seed=0)
    masks = torch.rand(2, 7, generator=torch.Generator().manual_seed(1)) < 0.6
    model, nodes = Centred(), torch.arange(7)
    both = toggle_answers([model], data, masks, nodes, engine="whole")
    found, wanted = both.signal, toggle_answers([model], data, masks, nodes, engine="reference")
    torch.testing.assert_close(found, wanted.signal)
    torch.testing.assert_close(both.own, wanted.own)
    alone = reference_losses([lambda x, edges: x[:, :CLASSES]], data, masks, nodes)
    assert (found - alone).abs().max() > 0.01


def test_long_work_is_announced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(black_box, "_WORTH_SAYING", 0.0)
    data = simple_graph(size=4, edges=3, seed=0)
    with caplog.at_level(logging.WARNING, "glasshouse"):
        toggle_losses([Centred()], data, torch.ones(1, 4, dtype=torch.bool), torch.arange(4), engine="whole")
    assert "it takes 5 queries of whole graphs" in caplog.text
