from __future__ import annotations

import numpy as np
import pytest

from glasshouse.attacks import BASE, LiRA
from glasshouse.evaluation import run_attack
from glasshouse.graph import GBASE, Scene
from glasshouse.graph.run import run_on_scene
from tests.graph.scenes import trained_scene


def test_iid_attacks_see_zero_hop_evidence() -> None:
    scene = trained_scene(shadows=8)
    found = run_on_scene(LiRA(), scene, fprs=[0.05])
    expected = run_attack(LiRA(), scene.zero_hop, fprs=[0.05], members=scene.truth)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9)
    assert found.thresholds[0].value == pytest.approx(expected.thresholds[0].value)


def test_true_membership_changes_no_score_and_no_threshold() -> None:
    scene = trained_scene(shadows=8)
    assert scene.truth is not None
    shuffled = Scene(
        scene.data,
        scene.target,
        scene.shadows,
        scene.shadow_members,
        truth=np.random.default_rng(0).permutation(scene.truth),
    )
    for attack in (BASE(), GBASE(sampler="mia", samples=2), GBASE(sampler="gibbs", samples=2)):
        first, second = (run_on_scene(attack, some, fprs=[0.05]) for some in (scene, shuffled))
        assert (first.scores == second.scores).all()
        assert first.thresholds == second.thresholds


def test_thresholds_come_from_simulated_targets_and_few_shadows_have_none() -> None:
    scene = trained_scene(shadows=8)
    outcome = run_on_scene(GBASE(samples=2), scene, fprs=[0.1])
    assert outcome.thresholds[0].simulated == 8
    pair = Scene(scene.data, scene.target, scene.shadows[:2], scene.shadow_members[:2], truth=scene.truth)
    few = run_on_scene(GBASE(samples=2), pair, fprs=[0.1])
    assert few.thresholds == ()
    assert "too few to simulate" in few.note
