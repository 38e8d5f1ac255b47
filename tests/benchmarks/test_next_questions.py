"""A small version of benchmarks/statistics/next_questions.py: intervals cover, lists and groups do not cry wolf."""

from __future__ import annotations

import math

import pytest

from tests.benchmarks.scripts import benchmark

NEXT = benchmark("next_questions")


@pytest.mark.parametrize(("tpr", "fpr"), [(0.01, 0.01), (0.3, 0.01), (0.5, 0.5)])
def test_intervals_of_precision_and_advantage_cover(tpr: float, fpr: float) -> None:
    held = NEXT.precision_coverage(250, 250, tpr, fpr, runs=400)
    assert all(0.925 <= share <= 1.0 for share in held)


def test_a_list_holds_few_non_members_with_a_leak_and_is_mostly_empty_without() -> None:
    for shift, share in ((0.0, 0.1), (3.0, 0.5)):
        found = NEXT.discoveries(
            ("loss", "lira"), records=400, shift=shift, share=share, apart=0.3, runs=20, seed=int(shift)
        )
        for listed, fdr, right in found.values():
            assert fdr <= 0.12
            assert listed <= 0.2 if shift == 0 else right > 20


@pytest.mark.parametrize(("share", "auc"), [(0.5, 0.5), (0.1, 0.5), (0.5, 0.95)])
def test_groups_that_leak_alike_are_not_singled_out(share: float, auc: float) -> None:
    alarms, compared, held = NEXT.group_alarms(records=2000, share=share, auc=auc, runs=40)
    assert alarms <= 0.15  # 5 % and three standard errors of so few runs
    assert held >= 0.87
    assert compared > 4 or auc > 0.9


def test_the_stated_leak_is_found_in_four_of_five_audits() -> None:
    for members, others, figures in ((250, 250, 1), (50, 450, 12)):
        found = NEXT.power_at(members, others, [0.1, 0.01], figures=figures, runs=600)
        assert all(0.75 <= power <= 0.9 for power in found), found
    assert math.isnan(NEXT.power_at(2, 100, [0.01], figures=100, runs=10)[1])
