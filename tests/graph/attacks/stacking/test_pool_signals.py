from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from glasshouse.graph import GStacked
from glasshouse.graph import scene as scene_module
from glasshouse.graph.attacks.stacking import pool_signals
from glasshouse.graph.attacks.stacking.features import SampledAnswers
from glasshouse.graph.attacks.stacking.pool_signals import ask_pool, sampled_answers
from glasshouse.graph.rule import toggling
from glasshouse.graph.scene import Scene
from tests.graph.scenes import trained_scene


def test_of_a_large_pool_whole_pairs_are_asked_about_sampled_training_sets() -> None:
    scene = trained_scene(shadows=8)
    pool = ask_pool(scene, GStacked(samples=(2,), targets=4, sampled_models=6))
    members = pool.members[pool.sampled_models]
    assert len(pool.sampled_models) in (6, 8)
    assert set(pool.plan.targets) <= set(pool.sampled_models)
    assert (members.sum(axis=0) == len(members) // 2).all()
    assert pool.sampled.own.shape == (len(members), 2, 240)


def test_it_knows_the_very_pool_that_was_asked() -> None:
    scene = trained_scene()
    data, shadows, members = scene.data, scene.shadows, scene.shadow_members
    pool = ask_pool(scene, GStacked(samples=(1,), targets=4, sampled_models=4))
    assert pool.is_of(data, list(shadows), members.copy())
    assert not pool.is_of(data.clone(), shadows, members)
    assert not pool.is_of(data, shadows[:2], members[:2])
    assert not pool.is_of(data, shadows[::-1], members)
    assert not pool.is_of(data, shadows, ~members)


def test_a_shadow_model_in_the_targets_place_answers_as_any_target_does() -> None:
    scene = trained_scene()
    pool = ask_pool(scene, GStacked(samples=(2,), targets=4, sampled_models=4))
    other = Scene(scene.data, scene.shadows[1], scene.shadows, scene.shadow_members)
    (plain, sampled), (asked_plain, asked_sampled) = pool.of_shadow(1), pool.of_target(other)
    assert (plain.whole == asked_plain.whole).all()
    assert np.allclose(sampled.target.signal, asked_sampled.target.signal)


@pytest.mark.parametrize(
    ("pool_names", "target_names", "settled", "targets_own"),
    [
        (["packed"], ["packed"], "packed", "packed"),
        (["packed"], ["layered"], "packed", "auto"),
        (["layered", "packed"], ["layered"], "auto", "auto"),
    ],
)
def test_a_target_gets_the_engine_of_the_pools_models_unless_it_is_of_another_kind(
    monkeypatch: pytest.MonkeyPatch, pool_names: list[str], target_names: list[str], settled: str, targets_own: str
) -> None:
    used: list[str] = []

    def answers(*given: Any, engine: str, **options: Any) -> SampledAnswers:
        used.append(engine)
        return sampled_answers(*given, engine=engine, **options)

    scene = trained_scene()
    monkeypatch.setattr(pool_signals, "sampled_answers", answers)

    def names(models: Any, *given: Any, **options: Any) -> list[str]:
        return target_names if models[0].model is scene.target else pool_names

    monkeypatch.setattr(toggling, "engine_names", names)
    pool = ask_pool(scene, GStacked(samples=(1,), targets=4, sampled_models=4))
    references = pool.plan.references[0][:, 0]
    pool.under_masks(scene.profiled()[1], pool.masks, references)
    pool.under_masks(scene.profiled()[0], pool.masks, references)
    assert used == [settled, settled, targets_own]


@pytest.mark.parametrize("engine", ["layered", "packed", "reference"])
def test_how_long_simulated_targets_take_grows_with_their_training_sets_or_is_not_known(engine: str) -> None:
    scene = trained_scene()
    pool = ask_pool(scene, GStacked(samples=(1,), targets=4, sampled_models=4, engine="layered"))
    pool = dataclasses.replace(pool, settled=engine)
    one, many = (pool.seconds_under(np.repeat(pool.masks, count, axis=0)) for count in (1, 50))
    assert (one == many == 0) if engine == "reference" else (0 < 10 * one < many)


def test_the_engine_is_chosen_for_as_much_work_as_that_of_g_base_with_the_largest_rounds_masks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small first round alone might seem not to be worth compiling for."""
    scene, asked = trained_scene(shadows=8), []

    def settled(*given: Any, work: int, least: int, **options: Any) -> str:
        asked.append((work, least))
        return toggling.settled_engine(*given, work=work, least=least, **options)

    monkeypatch.setattr(pool_signals, "settled_engine", settled)
    monkeypatch.setattr(scene_module, "settled_engine", settled)
    pool = ask_pool(scene, GStacked(samples=(2, 5), targets=8, sampled_models=8))
    assert (
        scene.engine_for(np.repeat(pool.masks[:1], 5, axis=0)) == pool.settled == pool.engine_for(scene.profiled()[0])
    )
    assert asked == [(5 * 9 * 9, 5)] * 3
    assert len(pool.masks) == 2
