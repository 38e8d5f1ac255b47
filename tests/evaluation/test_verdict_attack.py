"""The attack that a verdict is about, chosen without luck."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from glasshouse.attacks import LossThreshold
from glasshouse.evaluation import AttackOutcome, evaluate, verdict_attack
from glasshouse.evaluation.thresholds import SimulatedFigures

MEMBERS = np.arange(400) < 200


def outcome(shift: float, seed: int = 0, **more: Any) -> AttackOutcome:
    scores = np.random.default_rng(seed).normal(size=400) + shift * MEMBERS
    return dataclasses.replace(
        AttackOutcome(LossThreshold(), scores, (), evaluate(scores, MEMBERS, fprs=[0.05]), 0.0), **more
    )


def simulated(strength: float) -> SimulatedFigures:
    return SimulatedFigures(targets=8, auc=0.5 + strength / 2, strengths=(strength,))


def test_simulated_targets_choose_and_the_target_does_not() -> None:
    """The attack that is better on the target is not taken: that would be luck if both were equal."""
    outcomes = {
        "lucky": outcome(3.0, simulated=simulated(0.1)),
        "steady": outcome(1.0, simulated=simulated(0.2)),
    }
    found = verdict_attack(outcomes, MEMBERS, fprs=[0.05])
    assert (found.attack, found.way, found.tried) == ("steady", "simulated", 2)
    assert found.metrics.auc == evaluate(outcomes["steady"].scores, MEMBERS, fprs=[]).auc


def test_without_simulated_targets_one_half_chooses_and_the_other_measures() -> None:
    found = verdict_attack(
        {"weak": outcome(0.2), "strong": outcome(2.0, simulated=simulated(0.9))}, MEMBERS, fprs=[0.05]
    )
    assert (found.attack, found.way) == ("strong", "half")
    assert (found.metrics.curve.members, found.metrics.curve.non_members) == (100, 100)


def test_the_figure_of_the_chosen_one_of_many_equal_attacks_is_right_on_average() -> None:
    """Eight attacks on noise: the largest AUC of all is 0.53 on average, that of the chosen one 0.5."""
    random = np.random.default_rng(0)
    chosen, luckiest = [], []
    for run in range(40):
        outcomes = {str(k): outcome(0.0, seed=int(random.integers(1 << 30))) for k in range(8)}
        luckiest.append(max(one.metrics.auc for one in outcomes.values() if one.metrics))
        chosen.append(verdict_attack(outcomes, MEMBERS, fprs=[0.05], seed=run).metrics.auc)
    assert np.mean(luckiest) > 0.53
    assert abs(np.mean(chosen) - 0.5) < 0.02


def test_too_few_records_for_halves_take_the_first_attack() -> None:
    few = np.arange(8) % 2 == 0
    outcomes = {
        name: AttackOutcome(
            LossThreshold(), np.arange(8.0) * sign, (), evaluate(np.arange(8.0) * sign, few, fprs=[]), 0.0
        )
        for name, sign in {"first": 1, "second": -1}.items()
    }
    found = verdict_attack(outcomes, few)
    assert (found.attack, found.way, found.fpr) == ("first", "only", None)


def test_the_rate_of_the_headline_allows_ten_wrong_accusations_where_one_does() -> None:
    rng = np.random.default_rng(0)
    members = np.arange(4000) < 2000
    scores = rng.normal(size=4000)
    one = AttackOutcome(LossThreshold(), scores, (), evaluate(scores, members, fprs=[0.01, 0.001]), 0.0)
    assert verdict_attack({"one": one}, members, fprs=[0.01, 0.001]).fpr == 0.01


def test_a_leak_that_is_shown_is_shown_by_the_attack_that_the_verdict_is_about() -> None:
    """The strongest on simulated targets may fail on the target; what then shows the leak takes its place."""
    outcomes = {
        "first": outcome(-0.6, simulated=simulated(0.5)),
        "weak": outcome(0.0, seed=1, simulated=simulated(0.3)),
        "other": outcome(1.5, seed=2, simulated=simulated(0.2)),
    }
    found = verdict_attack(outcomes, MEMBERS, fprs=[0.05])
    assert found.test.leak
    assert found.test.adjusted["first"] > 0.05
    assert (found.attack, found.way) == ("other", "shown")
    assert found.metrics.auc > 0.5
    # chosen on these records: intervals hold for all three attacks at once
    assert found.metrics.confidence == pytest.approx(1 - 0.05 / 3)
    own = outcomes["other"].metrics
    assert own is not None
    assert found.metrics.auc_interval.low < own.auc_interval.low


def test_an_attack_that_shows_the_leak_too_is_not_replaced_by_a_luckier_one() -> None:
    outcomes = {"first": outcome(1.0, simulated=simulated(0.5)), "lucky": outcome(2.0, simulated=simulated(0.2))}
    found = verdict_attack(outcomes, MEMBERS, fprs=[0.05])
    assert found.test.attack == "lucky"
    assert (found.attack, found.way) == ("first", "simulated")


def test_where_no_leak_is_shown_nothing_is_replaced() -> None:
    outcomes = {
        "first": outcome(-0.6, simulated=simulated(0.5)),
        "weak": outcome(0.0, seed=1, simulated=simulated(0.3)),
    }
    found = verdict_attack(outcomes, MEMBERS, fprs=[0.05])
    assert not found.test.leak
    assert (found.attack, found.way) == ("first", "simulated")


def test_a_rate_that_is_too_noisy_to_rank_by_leaves_the_choice_to_the_auc() -> None:
    """At 5 % of 200, a TPR of 6.5 % is chance; an AUC of 0.56 is not."""
    figures = {"noise": (0.5, 0.065), "base": (0.56, 0.055)}
    outcomes = {
        name: outcome(0.0, seed, simulated=SimulatedFigures(targets=8, auc=area, strengths=(rate,)))
        for seed, (name, (area, rate)) in enumerate(figures.items())
    }
    found = verdict_attack(outcomes, MEMBERS, fprs=[0.05])
    assert found.attack == "base"
    assert found.test.first == ("base", "auc")
    assert verdict_attack({"noise": outcome(0.0), "base": outcome(0.0, 1)}, MEMBERS, fprs=[0.05]).test.first is None
