"""A small version of the benchmark of the stacked attack, so that it keeps running."""

from __future__ import annotations

import dataclasses

import pytest

from glasshouse.attacks.learners import Boosted
from tests.benchmarks.scripts import benchmark
from tests.graph.scenes import trained_scene, truth_of


def test_both_recipes_find_members_and_the_steps_add_up() -> None:
    stacked = benchmark("stacked")
    scene = trained_scene(nodes=120, shadows=4)
    given = [(scene, truth_of(scene))]
    before = dataclasses.replace(stacked.BEFORE, samples=(2, 2), boosted=Boosted(rounds=10, leaves=15, fits=2))
    now = dataclasses.replace(stacked.NOW, samples=(2, 2), boosted=Boosted(rounds=10, leaves=15))
    both = []
    for attack, old in ((before, True), (now, False)):
        found = stacked.measure(attack, given, before=old)
        both.append(found)
        assert found["auc"].mean() > 60
        assert all(found[step] > 0 for step in ("learning", "asking", "kin"))
        steps = sum(found[step] for step in ("learning", "asking", "kin", "rest"))
        assert steps == pytest.approx(found["seconds"])
        assert stacked.line("made up", "now", found).count("|") == stacked.HEAD.splitlines()[-1].count("|")
    assert stacked.difference("made up", *both).count("|") == stacked.HEAD.splitlines()[-1].count("|")
