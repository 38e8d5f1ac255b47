from __future__ import annotations

import numpy as np
import pytest
import torch

from glasshouse.core.errors import InputError
from glasshouse.graph.models.profile import node_logits
from tests.graph.random_graphs import node_losses, random_models
from tests.graph.simple_graphs import simple_graph

DATA = simple_graph(size=7, edges=9, seed=0)


def test_every_model_answers_about_every_node_with_the_edges_it_is_shown() -> None:
    models = random_models("gcn", layers=2, count=2, dtype=torch.float32)
    none = DATA.edge_index[:, :0]
    found = {"all": node_losses(models, DATA), "none": node_losses(models, DATA, torch.arange(0))}
    for losses, edges in ((found["all"], DATA.edge_index), (found["none"], none)):
        for row, model in zip(losses, models, strict=True):
            model.eval()
            with torch.no_grad():
                expected = torch.nn.functional.cross_entropy(model(DATA.x, edges), DATA.y, reduction="none")
            np.testing.assert_allclose(row, expected.numpy(), rtol=1e-5, atol=1e-7)
    assert not np.allclose(found["all"], found["none"])


def test_a_model_that_knows_too_few_classes_is_refused() -> None:
    with pytest.raises(InputError, match=f"labels go up to {int(DATA.y.max())}"):
        next(node_logits([lambda x, edges: x[:, :1]], DATA))
