from __future__ import annotations

import numpy as np
import pytest
import torch

from glasshouse.core.errors import InputError
from glasshouse.graph import Scene
from glasshouse.graph.attacks.stacking.pool_signals import plain_answers, sampled_answers
from glasshouse.graph.rule.toggling import toggle_answers
from tests.graph.random_graphs import node_losses
from tests.graph.scenes import trained_scene


def test_plain_answers_are_what_models_answer_alone_and_in_the_whole_graph() -> None:
    scene = trained_scene()
    target, shadows = plain_answers(scene)
    assert (shadows.alone == node_losses(scene.shadows, scene.data, torch.arange(0))).all()
    assert (shadows.whole == node_losses(scene.shadows, scene.data)).all()
    assert (target.whole == node_losses([scene.target], scene.data)).all()


def test_of_a_node_among_nobody_the_own_loss_is_all() -> None:
    scene = trained_scene()
    nobody = np.zeros((1, int(scene.data.num_nodes)), dtype=bool)
    alone = sampled_answers([scene.target], scene.data, nobody)
    assert alone.own[0, 0] == pytest.approx(scene.zero_hop.target_loss, abs=1e-5)
    assert alone.gain == pytest.approx(0.0, abs=1e-5)


def test_sampled_answers_are_the_rule_as_written() -> None:
    scene = trained_scene()
    count = int(scene.data.num_nodes)
    mask = np.random.default_rng(0).random((1, count)) < 0.5
    found = sampled_answers([scene.target], scene.data, mask)
    some = torch.arange(0, count, 12)
    exact = toggle_answers([scene.target], scene.data, torch.from_numpy(mask), some, engine="reference")
    assert found.own[:, :, some] == pytest.approx(exact.own.numpy(), abs=1e-5)
    assert found.signal[:, :, some] == pytest.approx(exact.signal.numpy(), abs=1e-4)
    assert found.gain[:, some] == pytest.approx((exact.own - exact.signal).numpy()[:, 0], abs=1e-4)


def test_faults_are_input_errors() -> None:
    scene = trained_scene()
    narrow = Scene(scene.data, lambda x, edges: x[:, :1], scene.shadows, scene.shadow_members)
    with pytest.raises(InputError, match="labels go up to"):
        plain_answers(narrow)
    with pytest.raises(InputError, match="nonsense"):
        sampled_answers([scene.target], scene.data, np.ones((1, scene.data.num_nodes), dtype=bool), engine="nonsense")
