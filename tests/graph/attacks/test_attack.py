from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.graph import Scene
from glasshouse.graph.attacks import attack as rooms
from glasshouse.graph.attacks.attack import GraphAttack, Judgement, register_graph_attack
from glasshouse.graph.run import run_on_scene
from tests.graph.scenes import trained_scene


def test_a_users_own_graph_attack_runs_like_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "GRAPH_ATTACKS", copy.deepcopy(rooms.GRAPH_ATTACKS))

    @register_graph_attack("degree")
    @dataclass(frozen=True, kw_only=True)
    class Degree(GraphAttack):
        def judge(self, scene: Scene) -> Judgement:
            degree = np.bincount(scene.data.edge_index[0].numpy(), minlength=240).astype(float)
            return Judgement(degree[scene.nodes], {"largest": float(degree.max())})

    outcome = run_on_scene(rooms.GRAPH_ATTACKS.create("degree"), trained_scene(), fprs=[0.05])
    assert outcome.details["largest"] > 0
    assert outcome.metrics is not None
    assert len(outcome.thresholds) == 1


def test_an_attack_may_say_itself_how_simulated_targets_are_scored() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Number(GraphAttack):
        name = "number"

        def judge(self, scene: Scene) -> Judgement:
            return Judgement(scene.nodes.astype(float), {})

        def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
            for scores, members in super().simulated_scores(scene):
                yield scores + 1000.0, members

    (threshold,) = run_on_scene(Number(), trained_scene(), fprs=[0.1]).thresholds
    assert 1000.0 < threshold.value < 1240.0
