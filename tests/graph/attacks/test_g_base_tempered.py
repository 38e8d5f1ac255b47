from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from glasshouse.evaluation import auc, run_attack
from glasshouse.evidence import Mode
from glasshouse.graph import GBASE, TemperedGBASE
from tests.benchmarks.scripts import benchmark
from tests.graph.scenes import trained_scene

MODES: tuple[Mode, ...] = ("online", "offline")


@pytest.mark.parametrize("mode", MODES)
def test_with_temperature_1_and_no_ratio_it_is_g_base(mode: Mode) -> None:
    scene = trained_scene(shadows=4)
    plain = TemperedGBASE(mode=mode, samples=3, prior=0.3, temperature=1.0, ratio=0.0)
    np.testing.assert_allclose(plain.score(scene), GBASE(mode=mode, samples=3, prior=0.3).score(scene), atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_its_scores_are_those_of_the_benchmarks_formula(mode: Mode) -> None:
    """benchmarks/paper/tempered.py writes the same rule down by itself."""
    script, scene = benchmark("tempered"), trained_scene(shadows=4)
    attack = TemperedGBASE(mode=mode, temperature=2.0, ratio=0.5)
    expected = script.scores(script.signals(scene, mode, graph=True, seed=0), 2.0, 0.5)
    np.testing.assert_allclose(attack.score(scene), expected, atol=1e-9)


def test_both_numbers_come_from_simulated_targets_alone_and_are_kept() -> None:
    scene = trained_scene(shadows=4)
    attack = TemperedGBASE(samples=2).tuned(scene)
    assert "auto" not in (attack.temperature, attack.ratio)
    areas = []
    for numbers in ((1.0, 0.0), (attack.temperature, attack.ratio)):
        one = dataclasses.replace(attack, temperature=numbers[0], ratio=numbers[1])
        areas.append(np.mean([auc(*pair) for pair in one.simulated_scores(scene)]))
    assert areas[1] >= areas[0]
    outcome = run_attack(TemperedGBASE(samples=2), scene, fprs=(0.1,))
    assert outcome.attack == attack
    assert (outcome.scores == attack.score(scene)).all()
    assert outcome.attack.label == "g-base-tempered-mia"
