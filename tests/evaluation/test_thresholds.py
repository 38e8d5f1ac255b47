from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from glasshouse import Evidence
from glasshouse.attacks import BASE, RMIA, Attack, LiRA, create
from glasshouse.attacks.learners import Boosted
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.data import complementary_halves
from glasshouse.evaluation import estimate_thresholds, roc, run_attack
from glasshouse.evaluation.thresholds import predicted_rate, threshold_from
from glasshouse.report.figures import attack_figures
from tests.strategies import gaussian_evidence


@pytest.mark.parametrize("attack", [BASE(), BASE(mode="offline"), RMIA(mode="offline"), LiRA(), LiRA(mode="offline")])
def test_new_targets_stay_within_the_stated_interval(attack: Attack) -> None:
    """Each target here is outside its pool; its rate at the estimated threshold is compared with the interval."""
    inside, rates = [], []
    for seed in range(20):
        evidence, members = gaussian_evidence(records=2000, models=16, shift=1.5, seed=seed)
        (threshold,) = estimate_thresholds(attack, evidence, [0.05])
        rate = threshold.decide(attack.flag_scores(evidence))[~members].mean()
        rates.append(rate)
        inside.append(threshold.interval.low <= rate <= threshold.interval.high)
    assert np.mean(inside) >= 0.85  # a 95 % interval, twenty times
    assert np.mean(rates) == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize("attack", [BASE(), BASE(mode="offline", scale=0.5), LiRA()])
def test_held_out_simulated_targets_have_the_wanted_rate(attack: Attack) -> None:
    """Half of the pool's simulated targets set the threshold; the other half, never looked at, is cut by it."""
    inside, rates = [], []
    for seed in range(10):
        evidence, _ = gaussian_evidence(records=2000, models=16, shift=1.5, seed=seed)
        scored = [(attack.score(one.view), one.members) for one in evidence.simulated()]
        threshold = threshold_from(scored[:8], 0.05)
        for scores, members in scored[8:]:
            rate = threshold.decide(scores)[~members].mean()
            rates.append(rate)
            inside.append(threshold.interval.low <= rate <= threshold.interval.high)
    assert np.mean(inside) >= 0.9  # a 95 % interval, eighty times
    assert np.mean(rates) == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize(
    ("attack", "models"), [(BASE(), 4), (BASE(mode="offline", scale=0.5), 4), (LiRA(), 6), (LiRA(), 8), (RMIA(), 4)]
)
def test_with_few_shadow_models_the_realised_rate_is_the_expected_one(attack: Attack, models: int) -> None:
    """Flags by the full pool, which has more references than a simulated target: 0.3 to 0.8 % of the non-members."""
    expected, realised, inside = [], [], []
    for seed in range(25):
        evidence, members = gaussian_evidence(records=2000, models=models, shift=1.5, seed=seed)
        outcome = run_attack(attack, evidence, fprs=[0.01], members=members)
        (shown,) = attack_figures(attack.name, outcome, members).thresholds  # as in the report
        assert shown.false_alarms is not None
        expected.append(shown.expected_fpr)
        realised.append(shown.false_alarms)
        inside.append(shown.interval.low <= shown.false_alarms <= shown.interval.high)
    assert np.mean(realised) == pytest.approx(np.mean(expected), abs=0.0015)
    assert np.mean(inside) >= 0.85


def pools(records: int) -> dict[str, BoolArray]:
    """Six models in complementary pairs, drawn independently, and balanced without pairs."""
    random = np.random.default_rng(5)
    drawn = random.random((6, records)) < 0.5
    few = np.abs(drawn.sum(axis=0) - 3) > 1  # two models or more on each side, so that every attack runs
    drawn[:, few] = np.tile([True, False], 3)[:, None]
    return {
        "pairs": complementary_halves(records, models=6, seed=0),
        "independent": drawn,
        "balanced": random.random((6, records)).argsort(axis=0) < 3,
    }


@pytest.mark.parametrize("kind", ["pairs", "independent", "balanced"])
@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("name", ["base", "lira", "rmia", "shrunk-lira", "regressed", "bavaria", "loss", "stacked"])
def test_a_shadow_model_as_the_target_is_flagged_by_its_score_as_a_simulated_target(
    name: str, mode: str, kind: str
) -> None:
    """The same references in each kind of pool, and for attacks that learn the same predictor: the very same score."""
    members = pools(120)[kind]
    random = np.random.default_rng(1)
    loss = np.logaddexp(0.0, random.normal(size=120) - 1.5 * members + random.normal(size=members.shape))
    evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
    prior = members[0].mean()  # RMIA weights the records of a simulated target to it
    shared = {"mode": mode, "prior": prior, "boosted": Boosted(rounds=3, fits=1), "jobs": 1}
    attack = create(name, shared=shared).tuned(evidence)
    scores, _ = next(iter(attack.simulated_scores(evidence)))
    np.testing.assert_allclose(attack.flag_scores(evidence), scores, rtol=1e-9)


def test_simulated_targets_and_the_target_are_scored_with_one_setting() -> None:
    """With 32 shadows LiRA's own choice would differ between 16 models a side and the simulated targets' 15."""
    evidence, _ = gaussian_evidence(records=300, models=32, shift=1.0, seed=0)
    (auto,) = estimate_thresholds(LiRA(), evidence, [0.05])
    (own,) = estimate_thresholds(LiRA(variance="record"), evidence, [0.05])
    assert auto == own


def test_the_careful_policy_never_calls_more() -> None:
    evidence, _ = gaussian_evidence(records=1000, models=8, shift=1.5, seed=0)
    (mean,) = estimate_thresholds(BASE(), evidence, [0.05], threshold="mean")
    (careful,) = estimate_thresholds(BASE(), evidence, [0.05], threshold="max")
    assert careful.value >= mean.value
    assert careful.expected_fpr <= mean.expected_fpr


def test_a_threshold_from_one_kind_of_target_is_exact_on_it() -> None:
    random = np.random.default_rng(0)
    members = np.arange(1000) < 500
    scores = random.normal(size=1000) + members
    threshold = threshold_from([(scores, members)] * 3, 0.02)
    curve = roc(scores, members)
    assert (scores[~members] >= threshold.value).mean() == curve.fpr[curve.point_at(0.02)]
    assert threshold.expected_fpr == pytest.approx(0.02)
    assert threshold.simulated == 3


def test_the_expected_rate_of_a_target_is_at_the_threshold_of_the_other_targets() -> None:
    """Non-members at 0 … 9 times 1, 2 and 4: own cuts 9, 18 and 36, those of the others 27, 22.5 and 13.5."""
    members = np.arange(20) < 10
    scored = [(np.concatenate([np.full(10, 100.0), step * np.arange(10.0)]), members) for step in (1, 2, 4)]
    found = threshold_from(scored, 0.1)
    assert found.value == 21.0  # for a new target, of all three
    assert found.expected_fpr == pytest.approx((0 + 0 + 6 / 10) / 3)  # 16, 20, … 36 of the last target


def test_a_rate_below_one_record_calls_nobody_of_the_simulated() -> None:
    """A non-member on top, and no false positive allowed: the cut is above every score."""
    scores, members = np.array([3.0, 2.0, 1.0]), np.array([False, True, False])
    threshold = threshold_from([(scores, members)] * 2, 0.1)
    assert threshold.value > 3.0
    assert np.isfinite(threshold.value)


def test_an_attack_may_say_itself_how_simulated_targets_are_scored() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Doubled(BASE):
        def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
            for scores, members in super().simulated_scores(evidence):
                yield 2 * scores, members

    evidence, _ = gaussian_evidence(records=300, models=8, shift=1.0, seed=0)
    (plain,), (doubled,) = (estimate_thresholds(attack, evidence, [0.05]) for attack in (BASE(), Doubled()))
    assert doubled.value == 2 * plain.value
    assert doubled.expected_fpr == plain.expected_fpr


@pytest.mark.parametrize(("targets", "quantile"), [(4, 3.182446), (6, 2.570582)])
def test_the_rate_of_one_more_target_is_students_t_with_one_degree_less_than_targets(
    targets: int, quantile: float
) -> None:
    """Rates that differ far more than counts do; the quantiles are from a table of Student's t, 97.5 %."""
    false, others = np.arange(targets) * 2000 + 1000, np.full(targets, 100_000)
    rates = false / others
    middle = sum(rates) / targets
    variance = sum((rate - middle) ** 2 for rate in rates) / (targets - 1)
    expected = middle + quantile * np.sqrt(variance * (1 + 1 / targets))
    assert predicted_rate(false, others).high == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("spread", [0.0, 0.4])
@pytest.mark.parametrize(("rate", "others", "asked"), [(0.001, 1000, 1000), (0.01, 250, 250), (0.01, 2500, 500)])
def test_predicted_rates_hold_a_new_target(spread: float, rate: float, others: int, asked: int) -> None:
    """Counts of false positives of eight targets and one more, whose own rates differ (spread) or do not."""
    random = np.random.default_rng(0)
    inside = []
    for _ in range(200):
        rates = rate * np.exp(random.normal(-(spread**2) / 2, spread, 9))
        false = random.binomial(others, rates[:8])
        low, high = predicted_rate(false, np.full(8, others), non_members=asked)
        assert high < 20 * rate + 5 / asked
        inside.append(low <= random.binomial(asked, rates[8]) / asked <= high)
    assert np.mean(inside) >= 0.93


def test_targets_that_are_all_alike_leave_the_beta_binomial_interval() -> None:
    """Quantiles of the next count in 500, by 80 false positives in 8 000 under Jeffreys' prior; nothing is added."""
    random = np.random.default_rng(0)
    next_count = random.binomial(500, random.beta(80.5, 7920.5, 200_000)) / 500
    low, high = predicted_rate(np.full(8, 10), np.full(8, 1000), non_members=500)
    assert [low, high] == [pytest.approx(one, abs=1e-9) for one in np.quantile(next_count, [0.025, 0.975])]


@pytest.mark.parametrize("share", [0.1, 0.8])
def test_thresholds_of_rmia_hold_for_another_share_of_members(share: float) -> None:
    """Its score is a share of all records: thresholds that do not know the share accuse 11 % for 1 % at a tenth."""
    rates = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        members = np.concatenate([half := random.random((4, 3000)) < 0.5, ~half, [random.random(3000) < share]])
        margins = random.normal(size=3000) + 3 * members + random.normal(size=members.shape)
        loss = np.logaddexp(0.0, -margins)
        evidence = Evidence(target_loss=loss[8], shadow_loss=loss[:8], shadow_members=members[:8])
        (threshold,) = estimate_thresholds(RMIA(prior=share), evidence, [0.01])
        rates.append(threshold.decide(RMIA().flag_scores(evidence))[~members[8]].mean())
    assert np.mean(rates) == pytest.approx(0.01, abs=0.004)
