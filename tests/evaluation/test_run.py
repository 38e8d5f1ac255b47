from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, Attack, Judgement, LiRA, QueryCount, create
from glasshouse.core.arrays import FloatArray
from glasshouse.evaluation import run_attack
from glasshouse.evaluation.best import AttackCache
from glasshouse.graph import GBASE, GraphAttack, GroundTruth, Scene
from tests.graph.scenes import trained_scene, truth_of
from tests.strategies import gaussian_evidence


def test_attacks_on_records_see_zero_hop_evidence() -> None:
    scene = trained_scene(shadows=8)
    found = run_attack(LiRA(), scene, fprs=[0.05])
    expected = run_attack(LiRA(), scene.zero_hop, fprs=[0.05], members=truth_of(scene))
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9)
    assert found.thresholds[0].value == pytest.approx(expected.thresholds[0].value)


def test_true_membership_changes_no_score_and_no_threshold() -> None:
    scene = trained_scene(shadows=8)
    truths = (truth_of(scene), np.random.default_rng(0).permutation(truth_of(scene)))
    for attack in (BASE(), GBASE(sampler="mia", samples=2), GBASE(sampler="gibbs", samples=2)):
        first, second = (run_attack(attack, scene, fprs=[0.05], members=truth) for truth in truths)
        assert (first.scores == second.scores).all()
        assert first.thresholds == second.thresholds


def test_what_an_attack_is_given_does_not_hold_the_truth() -> None:
    """No attribute of a view is the target's membership, whatever it is called."""
    scene = trained_scene(shadows=8)
    truth = truth_of(scene)
    for view in (scene, scene.evidence):
        held = [value for value in vars(view).values() if isinstance(value, np.ndarray) and value.shape == truth.shape]
        assert not any(np.array_equal(value, truth) for value in held)
        assert not hasattr(view, "truth")


def test_thresholds_come_from_simulated_targets_and_few_shadows_have_none() -> None:
    scene = trained_scene(shadows=8)
    outcome = run_attack(GBASE(samples=2), scene, fprs=[0.1])
    assert outcome.thresholds[0].simulated == 8
    pair = Scene(scene.data, scene.target, scene.shadows[:2], scene.shadow_members[:2])
    few = run_attack(GBASE(samples=2), pair, fprs=[0.1])
    assert few.thresholds == ()
    assert "too few to simulate" in few.note


def test_a_samplers_precision_and_recall_are_counted_against_the_members() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Guess(Attack):
        name = "guess"

        def score(self, view: Evidence) -> FloatArray:
            return -view.target_loss

        def judge(self, view: Evidence) -> Judgement:
            sampled = np.array([[1, 1, 0, 0], [0, 1, 0, 0]], dtype=bool)
            return Judgement(self.score(view), QueryCount(1.0), sampled=sampled)

    evidence = Evidence(target_loss=np.arange(4.0), shadow_loss=np.ones((1, 4)), shadow_members=np.ones((1, 4)))
    found = run_attack(Guess(), evidence, fprs=[], members=np.array([True, False, True, False]))
    assert found.details == {"sampler_precision": 1 / 3, "sampler_recall": 1 / 4}
    assert run_attack(Guess(), evidence, fprs=[]).details == {}


def test_the_ground_truth_is_a_limit_and_its_simulated_targets_have_their_own() -> None:
    scene = trained_scene(nodes=800, shadows=8)
    truth = truth_of(scene)
    attack = GBASE(sampler=GroundTruth(truth), samples=1)
    found = run_attack(attack, scene, fprs=[0.1], members=truth)
    assert attack.knows_truth
    assert found.attack.knows_truth
    assert (found.details["sampler_precision"], found.details["sampler_recall"]) == (1.0, 1.0)
    own = [GBASE(sampler=GroundTruth(who), samples=1) for who in scene.shadow_members]
    for (scores, _), told, target in zip(attack.simulated_scores(scene), own, scene.simulated(), strict=True):
        assert (scores == told.score(target.view)).all()


@pytest.mark.parametrize("kind", [Attack, GraphAttack])
def test_scores_that_are_not_numbers_are_refused_with_the_record(kind: Any) -> None:
    def score(self: object, view: Evidence | Scene) -> FloatArray:
        return np.where(np.arange(len(view.ids)) == 2, np.nan, 0.0)

    broken: Any = type("Broken", (kind,), {"name": "broken", "score": score})
    view = gaussian_evidence(records=9, models=4, shift=1.0, seed=0)[0] if kind is Attack else trained_scene()
    with pytest.raises(InputError, match="broken: record '2' got a score that is not finite"):
        run_attack(broken(), view, fprs=[])


def test_an_attack_on_graphs_is_refused_where_there_is_none() -> None:
    evidence, _ = gaussian_evidence(records=9, models=4, shift=1.0, seed=0)
    with pytest.raises(InputError, match="g-base: it asks models about parts of a graph"):
        run_attack(GBASE(), evidence, fprs=[])


@pytest.mark.parametrize("name", ["base", "lira", "rmia"])
def test_scores_of_simulated_targets_are_not_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, members = gaussian_evidence(records=70_000, models=16, shift=1.0, seed=0)
    monkeypatch.setattr("glasshouse.attacks.in_out_moments._ROOM", 70_000)
    monkeypatch.setattr("glasshouse.evaluation.thresholds._KEPT", 1000)
    attack = create(name).tuned(evidence)
    cache = AttackCache(evidence, keep=False)
    tracemalloc.start()
    try:
        run_attack(attack, evidence, fprs=[0.01], members=members, cache=cache)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.8 * evidence.shadow_loss.nbytes  # over 2.3 with the scores of all
