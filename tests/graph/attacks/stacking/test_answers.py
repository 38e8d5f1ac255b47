from __future__ import annotations

import numpy as np
import pytest
import torch

from glasshouse.errors import InputError
from glasshouse.graph import toggle_losses
from glasshouse.graph.attacks.stacking import hear, sample_signals
from glasshouse.graph.attacks.stacking.stage import set_stage
from tests.graph.scenes import trained_scene


def test_models_are_heard_as_a_scene_hears_them() -> None:
    scene = trained_scene()
    heard = hear(scene.shadows, scene.data)
    assert heard.alone == pytest.approx(scene.zero_hop.shadow_loss)
    assert heard.whole == pytest.approx(scene.whole_graph.shadow_loss)


def test_the_own_loss_is_exact_for_sampled_nodes() -> None:
    """S of a graph where nobody else is sampled is the own loss; and of a sampled node the pass sees what it sees."""
    scene = trained_scene()
    count = int(scene.data.num_nodes)
    nobody = np.zeros((1, count), dtype=bool)
    alone = sample_signals([scene.target], scene.data, nobody)
    assert alone.own[0, 0] == pytest.approx(scene.zero_hop.target_loss)
    assert alone.gain == pytest.approx(0.0, abs=1e-5)
    mask = np.random.default_rng(0).random((1, count)) < 0.5
    found = sample_signals([scene.target], scene.data, mask)
    edges = scene.data.edge_index
    inside = torch.from_numpy(mask[0])
    kept = edges[:, inside[edges].all(0)]
    with torch.no_grad():
        logits = scene.target(scene.data.x, kept).double()
    exact = torch.nn.functional.cross_entropy(logits, scene.data.y, reduction="none").numpy()
    assert found.own[0, 0][mask[0]] == pytest.approx(exact[mask[0]], abs=1e-5)
    signal = toggle_losses([scene.target], scene.data, torch.from_numpy(mask), torch.arange(count)).numpy()
    assert found.signal == pytest.approx(signal)


def test_faults_are_told_as_input_errors() -> None:
    scene = trained_scene()
    with pytest.raises(InputError, match="labels go up to"):
        hear([lambda x, edges: x[:, :1]], scene.data)
    with pytest.raises(InputError, match="nonsense"):
        sample_signals([scene.target], scene.data, np.ones((1, scene.data.num_nodes), dtype=bool), engine="nonsense")


def test_of_a_large_pool_whole_pairs_speak() -> None:
    scene = trained_scene(shadows=8)
    stage = set_stage(
        scene.data,
        scene.shadows,
        scene.shadow_members,
        mode="online",
        samples=2,
        targets=4,
        speakers=6,
        engine="auto",
        seed=0,
    )
    members = stage.members[stage.speakers]
    assert len(stage.speakers) in (6, 8)
    assert set(stage.plan.targets) <= set(stage.speakers)
    assert (members.sum(axis=0) == len(members) // 2).all()
    assert stage.said.own.shape == (len(members), 2, 240)
