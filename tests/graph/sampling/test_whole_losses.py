from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.sampling.chain_state import forward_losses
from tests.graph.random_graphs import CLASSES, random_models
from tests.graph.simple_graphs import simple_graph


@pytest.mark.parametrize("seed", range(5))
def test_losses_are_those_on_the_graph_of_the_members_alone(seed: int) -> None:
    data = simple_graph(size=10, edges=16, seed=seed)
    models = random_models("gcn", layers=2, count=2, dtype=torch.float32)
    mask = np.random.default_rng(seed).random(10) < 0.6
    found = forward_losses(profile_models(models, data), data)(mask)
    members = torch.from_numpy(mask)
    alone = data.subgraph(members)
    for model, losses in zip(models, found, strict=True):
        model.eval()
        with torch.no_grad():
            logits = model(alone.x, alone.edge_index)
        expected = nn.functional.cross_entropy(logits.double(), alone.y, reduction="none").numpy()
        np.testing.assert_allclose(losses[mask], expected, rtol=1e-5)


def test_dropout_is_off_while_a_model_is_asked_and_on_again_afterwards() -> None:
    class Dropping(nn.Module):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return nn.functional.dropout(x[:, :CLASSES], 0.5, self.training)

    model = Dropping().train()
    data = simple_graph(size=6, edges=6, seed=0)
    ask = forward_losses(profile_models([model], data), data)
    assert np.array_equal(ask(np.ones(6, np.bool_)), ask(np.ones(6, np.bool_)))
    assert model.training
