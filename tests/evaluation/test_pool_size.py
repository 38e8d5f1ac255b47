"""Sub-pools: the share of them in which a record is still called a member, and targets with fewer references."""

from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evidence
from glasshouse.attacks import create
from glasshouse.data import random_subsets
from glasshouse.evaluation import Interval, Threshold, run_attack
from glasshouse.evaluation.pool_size import compare_references, fewer_references, stability, strength
from glasshouse.evaluation.thresholds import conformal_p_values
from tests.strategies import gaussian_evidence


@pytest.mark.parametrize("name", ["base", "lira", "rmia", "loss"])
def test_steadiness_counts_sub_pools_one_by_one(name: str) -> None:
    evidence, _ = gaussian_evidence(records=60, models=8, shift=1.5, seed=0)
    attack = create(name).tuned(evidence)
    threshold = Threshold(0.1, float(np.median(attack.score(evidence))), "mean", 0.1, Interval(0.0, 0.2), 8)
    plain = np.zeros(60)
    for pair in range(4):
        rows = [row for row in range(8) if row // 2 != pair]
        part = Evidence(
            target_loss=evidence.target_loss,
            shadow_loss=evidence.shadow_loss[rows],
            shadow_members=evidence.shadow_members[rows],
        )
        plain += attack.score(part) >= threshold.value
    found = stability(attack, evidence, threshold)
    assert found is not None
    np.testing.assert_allclose(found, plain / 4)
    if name == "loss":  # it looks at no shadow model, so it is always steady
        assert set(found.tolist()) <= {0.0, 1.0}
    else:
        assert 0 < found.mean() < 1


def test_expensive_attacks_and_pools_without_pairs() -> None:
    evidence, _ = gaussian_evidence(records=60, models=8, shift=1.5, seed=0)
    threshold = Threshold(0.1, 0.0, "mean", 0.1, Interval(0.0, 0.2), 8)
    assert stability(create("classifier"), evidence, threshold) is None
    assert compare_references(create("stacked"), evidence, [], []) is None
    drawn = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=random_subsets(60, models=8, fraction=0.5, seed=0),
    )
    assert stability(create("base"), drawn, threshold) is not None
    assert compare_references(create("base"), drawn, [], []) is None


def test_more_references_help_an_attack_that_estimates_each_record() -> None:
    evidence, _ = gaussian_evidence(records=2000, models=16, shift=2.0, seed=0, difficulty=3.0)
    attack = create("base").tuned(evidence)
    fprs = [0.01, 0.1]
    strengths = [strength(attack, pair, fprs) for pair in attack.simulated_scores(evidence)]
    found = compare_references(attack, evidence, strengths, fprs)
    assert found is not None
    assert (found.references, found.fewer, found.targets, found.fpr) == (14, 8, 8, 0.1)
    assert found.strength > found.fewer_strength
    assert found.helps
    loss = create("loss")
    strengths = [strength(loss, pair, []) for pair in loss.simulated_scores(evidence)]
    same = compare_references(loss, evidence, strengths, [])
    assert same is not None
    assert same.strength == same.fewer_strength
    assert same.sentence().endswith("more shadow models would hardly help.")
    assert "AUC" in same.sentence()


def test_half_of_the_references_are_whole_pairs() -> None:
    assert [fewer_references(models) for models in (6, 8, 10, 16, 64)] == [2, 4, 4, 8, 32]


def test_an_outcome_has_p_values_and_steadiness_that_do_not_depend_on_the_members() -> None:
    evidence, members = gaussian_evidence(records=300, models=8, shift=2.0, seed=0)
    one, other = (run_attack(create("lira"), evidence, fprs=[0.1], members=mask) for mask in (members, ~members))
    for name in ("p_values", "stability", "discovery_levels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.p_values is not None
    assert one.flag_scores is not None
    attack = create("lira")
    by_hand = conformal_p_values(attack.flag_scores(evidence), list(attack.simulated_scores(evidence)))
    np.testing.assert_array_equal(one.p_values, by_hand)
    assert (one.p_values != conformal_p_values(one.scores, list(attack.simulated_scores(evidence)))).any()
    turned = one.of_records(np.arange(300)[::-1])
    (threshold,) = one.thresholds
    np.testing.assert_array_equal(turned.flagged(threshold), one.flagged(threshold)[::-1])
    assert one.p_values[members].mean() < 0.3 < one.p_values[~members].mean()
    few, _ = gaussian_evidence(records=50, models=2, shift=2.0, seed=0)
    outcome = run_attack(create("base"), few, fprs=[0.1])
    assert outcome.p_values is None
    assert outcome.discovery_levels is None
    assert outcome.stability is None


@pytest.mark.parametrize("models", [4, 8])
def test_every_second_record_may_be_a_member(models: int) -> None:
    """Of more than 100 000 records every second is compared, and these may all be members."""
    random = np.random.default_rng(0)
    half = np.array([random.permutation(100_002) % 2 == 0 for _ in range(models // 2)])
    half[0] = np.arange(100_002) % 2 == 0
    members = np.stack([half, ~half], axis=1).reshape(models, -1)
    losses = random.random(members.shape) + ~members
    evidence = Evidence(target_loss=losses[0], shadow_loss=losses, shadow_members=members)
    outcome = run_attack(create("base"), evidence, fprs=[0.01])
    assert outcome.fewer is None
    assert outcome.thresholds
