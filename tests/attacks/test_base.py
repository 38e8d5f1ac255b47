from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE
from glasshouse.evaluation import auc, estimate_thresholds
from tests.strategies import gaussian_evidence, random_evidence


@given(random_evidence())
def test_base_equals_the_rule_written_out_by_hand(evidence: Evidence) -> None:
    """Definition 3, record by record, in plain Python."""
    for prior in (0.5, 0.1):
        found = BASE(prior=prior).score(evidence)
        for v in range(evidence.records):
            column = evidence.shadow_loss[:, v]
            least = min(column)
            expected = -least + math.log(sum(math.exp(least - loss) for loss in column) / len(column))
            x = -evidence.target_loss[v] - expected + math.log(prior / (1 - prior))
            posterior = 1 / (1 + math.exp(-x)) if x > -700 else 0.0
            assert found[v] == pytest.approx(posterior, rel=1e-9, abs=1e-12)


@given(random_evidence())
def test_offline_asks_only_models_without_the_record(evidence: Evidence) -> None:
    """Changing what in-models say changes nothing."""
    other = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=np.where(evidence.shadow_members, 1.0, evidence.shadow_loss),
        shadow_members=evidence.shadow_members,
    )
    attack = BASE(mode="offline", scale=0.3)
    assert (attack.score(evidence) == attack.score(other)).all()


def test_the_offline_scale_is_tuned_on_the_pool_and_never_on_the_target() -> None:
    evidence, _ = gaussian_evidence(records=400, models=8, shift=1.5, seed=0)
    tuned = BASE(mode="offline").tuned(evidence).scale
    assert isinstance(tuned, float)
    assert 0.0 < tuned < 1.0
    other = Evidence(
        target_loss=evidence.target_loss[::-1],
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
    )
    assert BASE(mode="offline").tuned(other).scale == tuned


def test_a_tuned_scale_is_no_worse_than_none_on_new_targets() -> None:
    areas = []
    for seed in range(6):
        evidence, members = gaussian_evidence(records=1000, models=8, shift=1.5, seed=seed)
        areas.append([auc(BASE(mode="offline", scale=s).score(evidence), members) for s in ("auto", 1.0, 0.0)])
    tuned, one, zero = np.mean(areas, axis=0)
    assert tuned >= max(one, zero) - 0.002


def test_a_prior_of_each_record_moves_that_record_alone() -> None:
    evidence = Evidence(target_loss=[1.0, 1.0], shadow_loss=[[1.0, 1.0]] * 2, shadow_members=[[1, 0], [0, 1]])
    assert BASE(prior=[0.5, 0.9]).score(evidence) == pytest.approx([0.5, 0.9])
    with pytest.raises(InputError, match="3 numbers for 2 records"):
        BASE(prior=[0.5, 0.5, 0.5]).score(evidence)


@pytest.mark.parametrize("several", [False, True], ids=["one prior", "one per record"])
def test_the_prior_of_simulated_targets_is_that_of_the_target(several: bool) -> None:
    """Without it a threshold at a prior of 0.1 was 0.68 instead of 0.19, and flagged hardly anybody."""
    evidence, _ = gaussian_evidence(records=60, models=6, shift=1.5, seed=0)
    prior = np.linspace(0.05, 0.6, 60) if several else np.full(60, 0.1)
    attack = BASE(prior=prior if several else 0.1)
    found = list(attack.simulated_scores(evidence))
    for k, (scores, _) in enumerate(found):
        rest = [row for row in range(6) if row // 2 != k // 2]  # neither the target nor its complement
        for v in range(60):
            confidence = math.log(sum(math.exp(-evidence.shadow_loss[row, v]) for row in rest) / 4)
            odds = -evidence.shadow_loss[k, v] - confidence + math.log(prior[v] / (1 - prior[v]))
            assert scores[v] == pytest.approx(1 / (1 + math.exp(-odds)))
    (among,) = attack.scores_among(evidence, [np.arange(6)[:, None]])
    assert among == pytest.approx(attack.score(evidence))
    if not several:
        (threshold,) = estimate_thresholds(attack, evidence, [0.05])
        (even,) = estimate_thresholds(BASE(), evidence, [0.05])
        assert threshold.value < 0.3 < 0.5 < even.value


def test_bad_parameters_are_refused() -> None:
    for wrong in ({"prior": 1.0}, {"scale": 2.0}):
        with pytest.raises(InputError, match="between 0 and 1"):
            BASE(**wrong)  # type: ignore[arg-type]


def test_two_shadows_are_too_few_to_tune_by() -> None:
    evidence = Evidence(target_loss=[1.0, 1.0], shadow_loss=[[1.0, 1.0]] * 2, shadow_members=[[1, 0], [0, 1]])
    with pytest.raises(InputError, match="scale: cannot be tuned automatically.*train 4 or more.*give scale a number"):
        BASE(mode="offline").score(evidence)
    assert BASE(mode="offline", scale=1.0).score(evidence) == pytest.approx([0.5, 0.5])
