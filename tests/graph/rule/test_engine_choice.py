from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glasshouse.graph import scene as scene_module
from glasshouse.graph.attacks.g_base import GBASE
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule import toggling
from glasshouse.graph.rule.engines import MODELS_PER_AUDIT
from glasshouse.graph.rule.question import Question
from glasshouse.graph.rule.toggling import settled_engine
from glasshouse.graph.scene import Scene
from tests.graph.scenes import trained_scene


@pytest.mark.parametrize(("work", "least", "masks"), [(0, 5, 5), (7 * MODELS_PER_AUDIT, 5, 7), (1, 1, 1)])
def test_the_engine_is_chosen_for_all_the_work_and_at_least_for_the_largest_question(
    monkeypatch: pytest.MonkeyPatch, work: int, least: int, masks: int
) -> None:
    scene, asked = trained_scene(), []

    def names(models: Any, question: Question) -> list[str]:
        asked.append(question.masks.numpy())
        return ["layered"]

    monkeypatch.setattr(toggling, "engine_names", names)
    members = scene.shadow_members[:2]
    assert settled_engine(scene.profiled(), scene.question(members), work=work, least=least) == "layered"
    np.testing.assert_array_equal(asked[0], members[np.arange(masks) % 2])


def test_masks_that_stand_for_the_work_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, asked = trained_scene(), []

    def names(models: Any, question: Question) -> list[str]:
        asked.append(question.masks.numel())
        return ["layered"]

    monkeypatch.setattr(toggling, "engine_names", names)
    for least in (1, 100_000):
        settled_engine(scene.profiled(), scene.question(scene.shadow_members), work=10**12, least=least)
    assert 2**24 - 240 < asked[0] <= 2**24
    assert asked[1] == 100_000 * 240  # a question itself is never cut


def test_a_large_pool_is_worth_compiling_for_where_a_small_one_is_not() -> None:
    scene = trained_scene()
    little, much = (
        settled_engine(scene.profiled(), scene.question(scene.shadow_members), work=work) for work in (10, 1_000_000)
    )
    assert (little, much) == ("layered", "compiled")


def test_models_of_several_kinds_keep_an_engine_each() -> None:
    scene = trained_scene()
    models = profile_models([scene.target, lambda x, edge_index: x @ x.new_ones(x.shape[1], 3)], scene.data)
    assert settled_engine(models, scene.question(scene.shadow_members), work=10) == "auto"


def test_g_base_settles_the_same_engine_for_the_target_and_all_simulated_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question alone is too small to compile for; all of them together are not."""
    small, asked = trained_scene(shadows=8), []

    def settled(*given: Any, work: int, **options: Any) -> str:
        asked.append(work)
        return settled_engine(*given, work=work, **options)

    monkeypatch.setattr(scene_module, "settled_engine", settled)
    many = 5
    scene = Scene(small.data, small.target, small.shadows * many, np.tile(small.shadow_members, (many, 1)))
    attack = GBASE(samples=2)
    attack.score(scene)
    attack.score_simulated(scene, 0)
    assert asked == [2 * (8 * many + 1) ** 2] * 2


def test_nothing_is_settled_where_the_user_names_an_engine_or_nothing_is_asked() -> None:
    scene = trained_scene()
    assert scene.engine_for(scene.shadow_members, engine="packed") == "packed"
    assert scene.engine_for(scene.shadow_members[:0]) == "auto"
