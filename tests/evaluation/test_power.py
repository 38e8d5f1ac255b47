"""Which leak an audit could have shown: limits of the formulas; the simulation is in the benchmark's test."""

from __future__ import annotations

import numpy as np
import pytest

from glasshouse.evaluation.leakage import _members_needed, audit_power, smallest_auc, smallest_tpr


def test_more_records_and_fewer_figures_show_smaller_leaks() -> None:
    assert smallest_auc(5000, 5000) < smallest_auc(500, 500) < smallest_auc(500, 500, figures=20)
    few, many = smallest_tpr(500, 500, 0.01), smallest_tpr(5000, 5000, 0.01)
    assert few is not None
    assert many is not None
    assert 0.01 < many < few < 0.1


def test_the_test_of_a_rate_is_exact_by_counting_random_orders() -> None:
    """A leak just above what is needed: with no leak at all, that many members are found in at most 5 % of orders."""
    random = np.random.default_rng(0)
    members, others, allowed = 40, 60, 3
    needed = _members_needed(members, others, allowed, error=0.05)
    scores = random.random((20_000, members + others))
    cut = np.sort(scores[:, members:], axis=1)[:, others - 1 - allowed]
    hits = (scores[:, :members] > cut[:, None]).sum(axis=1)
    assert (hits >= needed).mean() <= 0.055
    assert (hits >= needed - 1).mean() > 0.05


def test_what_a_finer_audit_needs_is_enough() -> None:
    power = audit_power(500, 500, [0.01], attacks=6)
    assert power.figures == 12
    assert power.finer_auc < power.auc
    half = power.records_for_auc / 2
    assert smallest_auc(round(half), round(half), figures=12) <= power.finer_auc + 1e-4
    assert power.finer_rate == 0.01  # five false positives are too few
    assert power.non_members_for_rate == 1000
    assert audit_power(1000, 1000, [0.01], attacks=6).finer_rate == 0.001
    assert power.rates[0].chance == pytest.approx(6 / 501)


def test_an_audit_that_is_too_small_for_any_rate_says_so() -> None:
    assert smallest_tpr(2, 100, 0.01, figures=100) is None
    assert audit_power(2, 100, [0.01], attacks=50).rates == ()
    assert audit_power(3, 3, [], attacks=1).auc <= 1.0


def test_the_figure_that_gets_most_of_the_error_shows_a_smaller_leak_and_the_others_a_larger_one() -> None:
    alike = audit_power(1000, 1000, [0.01], attacks=4)
    by_area = audit_power(1000, 1000, [0.01], attacks=4, first="auc")
    by_rate = audit_power(1000, 1000, [0.01], attacks=4, first="tpr@0.01")
    assert by_area.auc < alike.auc < by_rate.auc
    assert by_rate.rates[0].tpr < alike.rates[0].tpr < by_area.rates[0].tpr
    assert by_area.auc == pytest.approx(smallest_auc(1000, 1000, figures=1 / 0.9))
