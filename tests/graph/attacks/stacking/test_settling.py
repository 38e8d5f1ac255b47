from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glasshouse.attacks.stacking.learners import Boosted
from glasshouse.attacks.stacking.network import Network
from glasshouse.attacks.stacking.plan import plan_targets
from glasshouse.graph.attacks.stacked import GStacked
from glasshouse.graph.attacks.stacking import answers, settling
from glasshouse.graph.attacks.stacking.settling import settled_engine, work_of
from glasshouse.graph.rule.toggle import MODELS_PER_AUDIT, toggle_answers
from tests.graph.scenes import trained_scene


@pytest.mark.parametrize(("shadows", "samples"), [(8, (3,)), (8, (2, 3)), (4, (1, 2, 2))])
def test_work_is_what_an_attack_asks(monkeypatch: pytest.MonkeyPatch, shadows: int, samples: tuple[int, ...]) -> None:
    scene, asked = trained_scene(shadows=shadows), []

    def counted(models: Any, data: Any, masks: Any, *given: Any, **options: Any) -> Any:
        asked.append(len(models) * len(masks))
        return toggle_answers(models, data, masks, *given, **options)

    monkeypatch.setattr(answers, "toggle_answers", counted)
    small = Network(nets=1, epochs=1, examples=500)
    attack = GStacked(samples=samples, boosted=Boosted(rounds=2), network=small, early=small, jobs=1).tuned(scene)
    attack.judge(scene)
    plan = plan_targets(scene.shadow_members, targets=attack.targets, seed=attack.seed)
    assert work_of(plan, np.arange(shadows), samples) == sum(asked)


@pytest.mark.parametrize(("work", "least", "masks"), [(0, 5, 5), (7 * MODELS_PER_AUDIT, 5, 7), (1, 1, 1)])
def test_the_engine_is_chosen_for_all_the_work_and_at_least_for_the_largest_question(
    monkeypatch: pytest.MonkeyPatch, work: int, least: int, masks: int
) -> None:
    scene, asked = trained_scene(), []

    def names(models: Any, data: Any, given: Any, nodes: Any) -> list[str]:
        asked.append(given.numpy())
        return ["layered"]

    monkeypatch.setattr(settling, "engine_names", names)
    members = scene.shadow_members[:2]
    assert settled_engine(scene.shadows, scene.data, members, None, work=work, least=least) == "layered"
    np.testing.assert_array_equal(asked[0], members[np.arange(masks) % 2])


def test_a_large_pool_is_worth_compiling_for_where_a_small_one_is_not() -> None:
    scene = trained_scene()
    little, much = (
        settled_engine(scene.shadows, scene.data, scene.shadow_members, None, work=work) for work in (10, 1_000_000)
    )
    assert (little, much) == ("layered", "compiled")
