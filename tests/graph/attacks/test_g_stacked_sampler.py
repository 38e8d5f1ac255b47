from __future__ import annotations

import copy
import functools
import gc
import weakref

import numpy as np
import pytest

from glasshouse.attacks.learners import Boosted, Network
from glasshouse.core.arrays import BoolArray
from glasshouse.graph import GBASE, GStacked, Scene
from glasshouse.graph.attacks.g_stacked import StackedSampler
from glasshouse.graph.sampling.samplers import SAMPLERS, SamplingRequest, draw
from tests.graph.scenes import trained_scene, truth_of


def request(prior: float = 0.5) -> SamplingRequest:
    return SamplingRequest(samples=6, prior=np.full(240, prior), mode="online", passes=1, seed=0)


@functools.cache
def learned() -> StackedSampler:
    """One sampler for all tests, which has learned the pool of `trained_scene`."""
    return StackedSampler().tuned(trained_scene(shadows=8), request())


def precision(masks: BoolArray, truth: BoolArray) -> float:
    return float((masks & truth).sum() / masks.sum())


def test_it_hits_members_more_often_than_zero_hop_queries_do() -> None:
    scene = trained_scene(shadows=8)
    samplers = (learned(), SAMPLERS.find("mia"), SAMPLERS.find("independent"))
    stacked, simple, blind = (precision(draw(one, scene, request()).masks, truth_of(scene)) for one in samplers)
    assert stacked > simple > blind


def test_the_prior_moves_how_many_are_sampled() -> None:
    few, many = (draw(learned(), trained_scene(shadows=8), request(prior)).masks.sum() for prior in (0.1, 0.9))
    assert few < many


def learn_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    few = GStacked(samples=(2,), boosted=Boosted(rounds=5, fits=1), network=Network(epochs=1), jobs=1)
    monkeypatch.setattr("glasshouse.graph.attacks.g_stacked._attack", lambda request: few)


def test_a_pool_is_learned_once_for_all_targets_of_an_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    learn_quickly(monkeypatch)
    scene = trained_scene(nodes=120, shadows=4)
    second = Scene(scene.data, scene.shadows[0], scene.shadows, scene.shadow_members)
    attack = GBASE(sampler="stacked", samples=2).tuned(scene)
    attack.score(scene)
    monkeypatch.setattr("glasshouse.graph.attacks.g_stacked.learn", lambda *_, **__: pytest.fail("learned again"))
    attack.score(second)


def test_no_pool_is_kept_alive_once_scene_and_attack_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 9 of issue 15: a cache held the last pool for the life of the process."""
    learn_quickly(monkeypatch)
    trained = trained_scene(nodes=120, shadows=4)
    models = [copy.deepcopy(model) for model in trained.models]
    watched = [weakref.ref(model) for model in models]
    scene = Scene(trained.data, models[0], models[1:], trained.shadow_members)
    attacks = [GBASE(sampler="stacked", samples=2), GStacked(samples=(2,), boosted=Boosted(rounds=5, fits=1))]
    for attack in attacks:
        attack.score(scene)
    del models, scene, attack, attacks
    gc.collect()
    assert [model() for model in watched] == [None] * 5
