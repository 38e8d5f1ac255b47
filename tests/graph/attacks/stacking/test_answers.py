from __future__ import annotations

import numpy as np
import pytest
import torch

from glasshouse.errors import InputError
from glasshouse.graph import toggle_losses
from glasshouse.graph.attacks.stacking.answers import plain_answers, sampled_answers
from tests.graph.scenes import trained_scene


def test_models_are_asked_as_a_scene_asks_them() -> None:
    scene = trained_scene()
    plain = plain_answers(scene.shadows, scene.data)
    assert plain.alone == pytest.approx(scene.zero_hop.shadow_loss)
    assert plain.whole == pytest.approx(scene.whole_graph.shadow_loss)


def test_the_own_loss_is_exact_for_sampled_nodes() -> None:
    """S of a graph where nobody else is sampled is the own loss; and of a sampled node the pass sees what it sees."""
    scene = trained_scene()
    count = int(scene.data.num_nodes)
    nobody = np.zeros((1, count), dtype=bool)
    alone = sampled_answers([scene.target], scene.data, nobody)
    assert alone.own[0, 0] == pytest.approx(scene.zero_hop.target_loss)
    assert alone.gain == pytest.approx(0.0, abs=1e-5)
    mask = np.random.default_rng(0).random((1, count)) < 0.5
    found = sampled_answers([scene.target], scene.data, mask)
    edges = scene.data.edge_index
    inside = torch.from_numpy(mask[0])
    kept = edges[:, inside[edges].all(0)]
    with torch.no_grad():
        logits = scene.target(scene.data.x, kept).double()
    exact = torch.nn.functional.cross_entropy(logits, scene.data.y, reduction="none").numpy()
    assert found.own[0, 0][mask[0]] == pytest.approx(exact[mask[0]], abs=1e-5)
    signal = toggle_losses([scene.target], scene.data, torch.from_numpy(mask), torch.arange(count)).numpy()
    assert found.signal == pytest.approx(signal)


def test_faults_are_input_errors() -> None:
    scene = trained_scene()
    with pytest.raises(InputError, match="labels go up to"):
        plain_answers([lambda x, edges: x[:, :1]], scene.data)
    with pytest.raises(InputError, match="nonsense"):
        sampled_answers([scene.target], scene.data, np.ones((1, scene.data.num_nodes), dtype=bool), engine="nonsense")
