from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from glasshouse.graph.sampling.samplers import SamplingRequest, draw

from glasshouse.graph import GBASE, GStacked, Scene
from glasshouse.population import complementary_halves
from tests.graph.scenes import trained_scene

MEMORY: dict[object, Any] = {}  # of one attack, for all tests


def request(prior: float = 0.5) -> SamplingRequest:
    return SamplingRequest(samples=6, prior=np.full(240, prior), mode="online", passes=1, seed=0, memory=MEMORY)


def test_it_hits_members_more_often_than_zero_hop_queries_do() -> None:
    scene = trained_scene(shadows=8)
    stacked, simple, blind = (draw(name, scene, request()).precision for name in ("stacked", "mia", "independent"))
    assert stacked is not None
    assert simple is not None
    assert blind is not None
    assert stacked > simple > blind


def test_the_prior_moves_how_many_are_sampled_and_the_truth_moves_nothing() -> None:
    scene = trained_scene(shadows=8)
    few, many = (draw("stacked", scene, request(prior)).masks.sum() for prior in (0.1, 0.9))
    assert few < many
    other = type(scene)(
        scene.data,
        scene.target,
        scene.shadows,
        scene.shadow_members,
        truth=complementary_halves(240, models=2, seed=9)[0],
    )
    assert (draw("stacked", scene, request()).masks == draw("stacked", other, request()).masks).all()


def test_a_pool_is_learned_once_for_all_targets_of_an_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = trained_scene(nodes=120, shadows=4)
    second = Scene(scene.data, scene.shadows[0], scene.shadows, scene.shadow_members)
    attack = GBASE(sampler="stacked", samples=2)
    attack.score_scene(scene)
    monkeypatch.setattr("glasshouse.graph.attacks.stacked.learn", lambda *_, **__: pytest.fail("learned again"))
    attack.score_scene(second)


def test_no_pool_is_kept_alive_once_scene_and_attack_are_gone() -> None:
    """Item 9 of issue 15: a cache held the last pool for the life of the process."""
    trained = trained_scene(nodes=120, shadows=4)
    models = [copy.deepcopy(model) for model in trained.models]
    watched = [weakref.ref(model) for model in models]
    scene = Scene(trained.data, models[0], models[1:], trained.shadow_members)
    attacks = [GBASE(sampler="stacked", samples=2), GStacked(samples=(2,))]
    for attack in attacks:
        attack.score_scene(scene)
    del models, scene, attack, attacks
    gc.collect()
    assert [model() for model in watched] == [None] * 5
