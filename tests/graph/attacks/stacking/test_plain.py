from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from glasshouse.attacks import BASE
from glasshouse.evaluation import auc
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.stacking import Heard, Stage, set_stage
from glasshouse.graph.attacks.stacking.plain import Plain, plain_of
from tests.graph.scenes import trained_scene


def stage_of(mode: Mode = "online") -> Stage:
    scene = trained_scene(shadows=8)
    return set_stage(
        scene.data,
        scene.shadows,
        scene.shadow_members,
        mode=mode,
        samples=2,
        targets=8,
        speakers=8,
        engine="auto",
        seed=0,
    )


def quality(plain: Plain, stage: Stage) -> float:
    """Mean AUC over simulated targets, each by the models other than itself and its complement."""
    pairs = zip(stage.plan.targets.tolist(), stage.plan.references, strict=True)
    views = [(k, stage.view(*stage.of_shadow(k), rows[:, 0])) for k, rows in pairs]
    return float(np.mean([auc(plain.log_odds(view), stage.members[k]) for k, view in views]))


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_the_attack_that_tells_simulated_targets_better_is_taken(mode: Mode) -> None:
    stage = stage_of(mode)
    taken = plain_of(stage)
    other = dataclasses.replace(taken, neighbours=not taken.neighbours)
    assert quality(taken, stage) >= quality(other, stage)


def test_neighbours_are_asked_where_a_node_alone_says_nothing() -> None:
    stage = stage_of()
    silent = np.ones_like(stage.heard.alone)
    assert plain_of(dataclasses.replace(stage, heard=Heard(silent, stage.heard.whole))).neighbours


def test_it_is_base_on_zero_hop_evidence() -> None:
    scene, stage = trained_scene(shadows=8), stage_of()
    k = int(stage.plan.targets[0])
    view = stage.view(*stage.of_shadow(k), np.arange(8))
    found = Plain(base=BASE()).log_odds(view)
    wanted = dataclasses.replace(scene.zero_hop, target_loss=scene.zero_hop.shadow_loss[k])
    assert found == pytest.approx(BASE().log_odds(wanted), abs=1e-5)
