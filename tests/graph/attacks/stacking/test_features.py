from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from glasshouse.arrays import BoolArray
from glasshouse.attacks import BASE
from glasshouse.attacks.stacking import Answers
from glasshouse.graph import GBASE, Scene
from glasshouse.graph.attacks.stacking import SIGNALS, Sampled, Surroundings, View, node_features, sample_signals
from glasshouse.graph.attacks.stacking.features import without_signals
from tests.graph.scenes import trained_scene


def view_of(scene: Scene, masks: BoolArray) -> View:
    found = sample_signals(scene.models, scene.data, masks)
    members = scene.shadow_members
    return View(
        alone=Answers(scene.zero_hop.target_loss, scene.zero_hop.shadow_loss, members),
        whole=Answers(scene.whole_graph.target_loss, scene.whole_graph.shadow_loss, members),
        target=found.of([0]),
        references=found.of(range(1, len(scene.models))),
        members=members,
        posterior=np.linspace(-1, 1, len(members[0])),
    )


def test_the_features_are_base_and_g_base_themselves() -> None:
    scene = trained_scene()
    masks = np.random.default_rng(0).random((3, 240)) < 0.5
    found = node_features(view_of(scene, masks), Surroundings.of(scene.data), mode="online")
    assert found["alone base"] == pytest.approx(logit(BASE().score(scene.zero_hop)), rel=1e-4, abs=1e-4)
    assert found["g-base"] == pytest.approx(GBASE(sampler=lambda scene, request: masks, samples=3).score(scene))
    assert all(value.shape == (240,) and np.isfinite(value).all() for value in found.values())


def test_offline_a_node_is_judged_by_its_out_models_answers_alone() -> None:
    """Change all that in-models say of a node: features of it stay, and only those of its neighbours' belief move."""
    scene = trained_scene()
    view = view_of(scene, np.random.default_rng(0).random((3, 240)) < 0.5)
    who = view.members
    changed = View(
        alone=view.alone._replace(references=np.where(who, 9.0, view.alone.references)),
        whole=view.whole._replace(references=np.where(who, 9.0, view.whole.references)),
        target=view.target,
        references=Sampled(*(np.where(who[:, None, :], 9.0, values) for values in view.references)),
        members=who,
        posterior=view.posterior,
    )
    around = Surroundings.of(scene.data)
    first, second = (node_features(one, around, mode="offline") for one in (view, changed))
    assert all((first[name] == second[name]).all() for name in first)
    assert "gain over inside" not in first


def test_every_feature_goes_with_some_signal() -> None:
    scene = trained_scene()
    found = node_features(view_of(scene, np.ones((1, 240), dtype=bool)), Surroundings.of(scene.data), mode="online")
    assert without_signals(found, SIGNALS) == {}
    for signal in SIGNALS:
        assert 0 < len(without_signals(found, [signal])) < len(found)
    assert list(without_signals(found, ["kin"])) == [name for name in found if not name.endswith(" kin")]
