from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from glasshouse.arrays import BoolArray, FloatArray
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
