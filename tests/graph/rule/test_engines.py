from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch_geometric.data import Data

from glasshouse.graph.models.profile import Profiled
from glasshouse.graph.rule import engines
from glasshouse.graph.rule.question import Question, Toggles
from glasshouse.graph.rule.toggling import toggle_losses
from tests.graph.random_graphs import FEATURES, random_models


class Zeros:
    def supports(self, models: Sequence[Profiled], question: Question) -> bool:
        return len(question.masks) == 1

    def seconds(self, models: Sequence[Profiled], question: Question) -> float:
        return 0.0

    def toggles(self, models: Sequence[Profiled], question: Question, *, memory: int) -> Toggles:
        return Toggles(*torch.zeros(2, len(models), 1, len(question.nodes), dtype=torch.float64))


def test_the_fastest_engine_is_taken_and_one_that_cannot_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_ENGINES", dict(engines._ENGINES))
    engines.register_engine("zeros", rank=99)(Zeros)
    assert list(engines.engines()) == ["compiled", "layered", "whole", "packed", "zeros"]
    data = Data(x=torch.ones(2, FEATURES), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
    models, nodes = random_models("gin", layers=1, dtype=torch.float32), torch.tensor([0])
    one, two = (torch.ones(masks, 2, dtype=torch.bool) for masks in (1, 2))
    assert not toggle_losses(models, data, one, nodes).any()
    assert toggle_losses(models, data, two, nodes).all()
