from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from glasshouse.attacks import create
from glasshouse.attacks.learners import Boosted, Network
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import run_attack
from glasshouse.graph import GraphAttack, Scene
from tests.graph.scenes import trained_scene


def test_an_attack_may_say_itself_how_simulated_targets_are_scored() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Number(GraphAttack):
        name = "number"

        def score(self, scene: Scene) -> FloatArray:
            return scene.nodes.astype(float)

        def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
            for scores, members in super().simulated_scores(scene):
                yield scores + 1000.0, members

    (threshold,) = run_attack(Number(), trained_scene(), fprs=[0.1]).thresholds
    assert 1000.0 < threshold.value < 1240.0


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("name", ["g-base", "g-base-tempered", "g-regressed", "g-classifier", "g-stacked"])
def test_a_shadow_model_as_the_target_is_flagged_by_its_score_as_a_simulated_target(name: str, mode: str) -> None:
    """Thresholds come from scores by six references; the same model scored by all eight is another matter."""
    scene = trained_scene(shadows=8)
    played = Scene(scene.data, scene.shadows[0], scene.shadows, scene.shadow_members, nodes=np.arange(100))
    quick = {"boosted": Boosted(rounds=3, fits=1), "network": Network(epochs=1), "folds": 2, "jobs": 1, "epochs": 2}
    shared = {"mode": mode, "samples": (4,), **quick}
    if name.startswith("g-base"):
        shared["samples"] = 4
    attack = create(name, shared=shared).tuned(played)
    scores, _ = next(iter(attack.simulated_scores(played)))
    np.testing.assert_allclose(attack.flag_scores(played), scores, rtol=1e-6)
    assert not np.allclose(attack.score(played), scores, rtol=1e-6)
