from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from glasshouse import Evaluation, Evidence, audit_evidence
from glasshouse.attacks import BASE, Stacked
from glasshouse.attacks.attack import AttackChoice
from glasshouse.attacks.learners import Boosted
from glasshouse.attacks.prior import prior_weights
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import run_attack
from glasshouse.evaluation.checks.calibration import binned, calibration_excess, calibration_floor, posterior_doubt
from tests.strategies import gaussian_evidence

SMALL = Boosted(rounds=20, fits=1, leaves=15)


@given(share=st.sampled_from([0.2, 0.5, 0.8]), prior=st.sampled_from([0.1, 0.3, 0.5, 0.9]), seed=st.integers(0, 20))
@settings(max_examples=12)
def test_the_floor_is_the_mean_error_of_true_posteriors(share: float, prior: float, seed: int) -> None:
    """Members are drawn as a target with this share has them, for posteriors that are true at the prior."""
    random = np.random.default_rng(seed)
    posteriors = expit(random.normal(logit(prior), 1.5, 1500))
    here = expit(logit(posteriors) + logit(share) - logit(prior))
    weights = {True: prior / share, False: (1 - prior) / (1 - share)}
    errors = []
    for _ in range(150):
        members = random.random(1500) < here
        drawn = np.where(members, weights[True], weights[False])
        errors.append(binned(posteriors, members, drawn).error)
    assert calibration_floor(posteriors, prior=prior, share=share) == pytest.approx(
        np.mean(errors), rel=0.2
    )  # bins of few records are not normal


def test_weights_count_records_as_often_as_copies() -> None:
    random = np.random.default_rng(0)
    posteriors, members, times = random.random(50), random.random(50) < 0.5, random.integers(1, 5, 50)
    copied = binned(np.repeat(posteriors, times), np.repeat(members, times)).error
    assert binned(posteriors, members, times.astype(float)).error == pytest.approx(copied)


def _excess(scored: Sequence[tuple[FloatArray, BoolArray]], prior: float) -> list[float]:
    return [calibration_excess(*pair, prior=prior) for pair in scored]


@pytest.mark.parametrize("prior", [0.1, 0.5])
def test_true_posteriors_are_believed_and_too_sure_ones_are_not(prior: float) -> None:
    """Simulated targets have half of the records; their scores are for another prior. Thirty pools."""
    doubts, too_sure = 0, 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        scored = []
        for _ in range(8):
            members = random.random(1000) < 0.5
            ratio = random.normal(np.where(members, 0.5, -0.5))  # the log-likelihood ratio of two unit Gaussians
            scored.append((expit(ratio + logit(prior)), members))
        members = random.random(1000) < prior
        target = random.normal(np.where(members, 0.5, -0.5)) + logit(prior)
        doubts += bool(posterior_doubt(expit(target), _excess(scored, prior), prior=prior))
        surer = [(expit(2 * logit(one) - logit(prior)), who) for one, who in scored]
        too_sure += bool(posterior_doubt(expit(2 * target - logit(prior)), _excess(surer, prior), prior=prior))
    assert doubts <= 3
    assert too_sure == 30


def test_a_mean_far_from_the_prior_is_not_believed() -> None:
    random = np.random.default_rng(0)
    scored = [(one, random.random(2000) < one) for one in random.random((6, 2000))]
    assert posterior_doubt(random.random(2000), _excess(scored, 0.5)) == ""
    assert "their mean on this target is 0.3" in posterior_doubt(random.random(2000) ** 2, _excess(scored, 0.5))
    assert "no simulated target" in posterior_doubt(random.random(2000), [])


def unlike(evidence: Evidence) -> Evidence:
    """A target that is surer of everything."""
    return Evidence(
        target_loss=evidence.target_loss / 8,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
    )


def test_a_target_unlike_its_shadow_models_has_figures_but_no_threshold_and_no_posterior() -> None:
    evidence, members = gaussian_evidence(records=600, models=8, shift=1.5, seed=0)
    attacks: list[AttackChoice] = ["base", "lira", Stacked(boosted=SMALL)]
    like, other = (
        audit_evidence(one, members=members, attacks=attacks, evaluation=Evaluation(fprs=[0.05]))
        for one in (evidence, unlike(evidence))
    )
    assert like.mismatch == ""
    assert "lira_decision" in like.records()
    assert "are not given" in other.summary().notes[0]
    assert not [name for name in other.records() if name.endswith(("_decision", "_posterior"))]
    assert "base_score" in other.records()
    for name, outcome in other.outcomes.items():
        assert outcome.thresholds == ()
        assert not outcome.calibrated
        assert outcome.metrics is not None
        assert outcome.metrics.auc > 0.6
        assert ("unlike" in outcome.doubt) == (name != "lira")
    assert other.privacy is not None
    assert other.privacy.epsilon > 0  # a bound on ε rests on ranks, and needs no threshold


def test_only_a_believed_posterior_is_a_column_and_a_diagram() -> None:
    evidence, members = gaussian_evidence(records=1500, models=8, shift=1.5, seed=0)
    result = audit_evidence(
        evidence, members=members, attacks=["base", Stacked(boosted=SMALL)], evaluation=Evaluation(fprs=[0.05])
    )
    records, summary = result.records(), result.summary()
    assert result.outcomes["stacked"].calibrated
    assert (records["stacked_posterior"] == records["stacked_score"]).all()
    assert "base_posterior" not in records  # BASE compares with few models, and is too sure
    measured = {attack.name: attack.metrics for attack in summary.attacks}
    stacked, base = measured["stacked"], measured["base"]
    assert stacked is not None
    assert base is not None
    assert stacked.calibration is not None
    assert stacked.calibration.error - stacked.calibration.floor < 0.02
    assert base.calibration is None
    assert "calibrated" in summary.attack("base").doubt


@pytest.mark.parametrize("per_record", [False, True])
def test_the_prior_of_the_attack_itself_is_the_one_that_is_judged(
    per_record: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, _ = gaussian_evidence(records=300, models=6, shift=1.0, seed=0)
    prior: FloatArray | float = np.full(300, 0.2) if per_record else 0.2
    scored: list[tuple[FloatArray, BoolArray]] = [
        (np.where(members, 0.2, 0.2), members) for members in evidence.shadow_members
    ]
    monkeypatch.setattr(BASE, "simulated_scores", lambda *_: iter(scored))
    outcome = run_attack(BASE(prior=prior), evidence, fprs=[0.1], prior=0.9)
    assert "simulated targets do not" not in outcome.doubt  # a constant posterior is calibrated at its own prior


def test_weights_turn_a_half_into_the_prior() -> None:
    members = np.random.default_rng(0).random((3, 40)) < 0.5
    weights = prior_weights(members, 0.1)
    np.testing.assert_allclose((weights * members).sum(axis=1) / weights.sum(axis=1), 0.1)
    each = np.random.default_rng(1).random(40)
    one = prior_weights(members, each)[1]
    share = members[1].mean()
    expected = [each[i] / share if members[1, i] else (1 - each[i]) / (1 - share) for i in range(40)]
    np.testing.assert_allclose(one, expected)
