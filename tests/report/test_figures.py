from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from glasshouse.attacks.attack import Attack
from glasshouse.core.arrays import FloatArray
from glasshouse.evaluation import AttackOutcome, Interval, evaluate
from glasshouse.evaluation.thresholds import Threshold
from glasshouse.report.figures import RateFigure, attack_figures

MEMBERS = np.array([True, True, False, False])
SCORES = np.array([4.0, 2.0, 3.0, 1.0])


@dataclass(frozen=True)
class Told(Attack):
    """An attack with parameters of every kind."""

    prior: FloatArray = field(default_factory=lambda: np.full(50, 0.5))
    sampler: Callable[[int], int] = abs
    rates: tuple[float, ...] = (0.1, 0.2)
    learned_: float = 3.0

    def score(self, view: Any) -> FloatArray:
        return SCORES


def outcome(**changed: Any) -> AttackOutcome:
    return AttackOutcome(Told(), SCORES, (), evaluate(SCORES, MEMBERS, fprs=[0.5]), 0.0, **changed)


def test_parameters_are_plain_data_and_what_was_learned_is_none() -> None:
    found = attack_figures("told", outcome(), MEMBERS).parameters
    assert found == {"prior": "50 numbers", "sampler": "abs", "rates": [0.1, 0.2]}


def test_a_detail_that_is_not_a_number_is_left_open() -> None:
    assert attack_figures("told", outcome(details={"a": 0.5, "b": np.nan}), MEMBERS).details == {"a": 0.5, "b": None}


def test_a_threshold_says_whom_it_calls_and_how_many_wrongly() -> None:
    threshold = Threshold(0.5, 2.5, "mean", 0.4, Interval(0.0, 1.0), 8)
    with_one = AttackOutcome(Told(), SCORES, (threshold,), None, 0.0)
    (known,) = attack_figures("told", with_one, MEMBERS).thresholds
    assert (known.called, known.correct, known.false_alarms) == (2, 1, 0.5)
    lower = AttackOutcome(Told(), SCORES, (Threshold(0.5, 1.5, "mean", 0.4, Interval(0.0, 1.0), 8),), None, 0.0)
    (more,) = attack_figures("told", lower, MEMBERS).thresholds
    assert (more.called, more.correct, more.false_alarms) == (3, 2, 0.5)
    (unknown,) = attack_figures("told", with_one, None).thresholds
    assert (unknown.called, unknown.correct, unknown.false_alarms) == (2, None, None)


def test_every_figure_of_a_rate_stands_in_its_own_column() -> None:
    """Of ten members and ten others, 6 and 2 are flagged where 2 may be: no two columns are alike."""
    scores = np.concatenate([np.arange(20.0, 14, -1), np.full(4, -4.5), [14.5, 14.4], np.arange(-8.0, 0)])
    members = np.arange(20) < 10
    found = evaluate(scores, members, fprs=[0.25])
    measured = attack_figures("told", AttackOutcome(Told(), scores, (), found, 0.0), members).metrics
    assert measured is not None
    (rate,) = measured.rates
    assert (rate.wanted, rate.fpr, rate.tpr, rate.allowed) == (0.25, 0.2, found.rates[0].estimate, 2)
    assert rate.tpr == pytest.approx(0.6, abs=0.02)
    assert rate.chance == 0.25
    assert rate.tpr_interval.low < 0.6 < rate.tpr_interval.high
    assert measured.auc == pytest.approx(0.76)
    assert measured.auc_interval.low < 0.76 < measured.auc_interval.high


def test_without_members_nothing_is_measured() -> None:
    assert attack_figures("told", AttackOutcome(Told(), SCORES, (), None, 0.0), None).metrics is None


def test_strength_counts_members_for_each_non_member_that_may_be_accused() -> None:
    kept = RateFigure(0.1, 0.05, 0.5, Interval(0.4, 0.6), 5, 0.11)
    above = RateFigure(0.1, 0.5, 1.0, Interval(0.9, 1.0), 5, 0.5, reached=False)
    assert kept.strength == 5.0 > above.strength == 2.0
