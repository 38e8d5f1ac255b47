"""Leak per group: figures as computed by hand, and who is singled out."""

from __future__ import annotations

import numpy as np
import pytest

from glasshouse.evaluation import auc, clopper_pearson
from glasshouse.evaluation.groups import group_leaks


def leaking(records: int, *, odd: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, members and five groups, of which group 3 leaks by another shift."""
    random = np.random.default_rng(seed)
    members, column = random.random(records) < 0.5, random.integers(5, size=records)
    scores = random.normal(size=records) + np.where(column == 3, odd, 1.0) * members
    return scores, members, column.astype(np.str_)


def test_figures_of_a_group_are_those_of_its_records_alone() -> None:
    scores, members, column = leaking(600, odd=1.0)
    called = scores > 1.5
    found = group_leaks(scores, members, {"class": column, "half": np.arange(600) < 300}, called=called)
    assert [one.group for one in found] == ["0", "1", "2", "3", "4", "False", "True"]
    for one in found[:5]:
        at = column == one.group
        assert one.auc == pytest.approx(auc(scores[at], members[at]))
        hits = int(called[at & members].sum())
        assert one.tpr == hits / one.members
        assert one.tpr_interval == clopper_pearson(hits, one.members, confidence=1 - 0.05 / 7)
        assert one.fpr == called[at & ~members].mean()
        assert (one.members, one.non_members) == (int(members[at].sum()), int((~members[at]).sum()))


@pytest.mark.parametrize(("odd", "side"), [(2.5, "more"), (0.0, "less")])
def test_the_one_group_that_leaks_otherwise_is_singled_out(odd: float, side: str) -> None:
    scores, members, column = leaking(4000, odd=odd)
    assert {one.group: one.singled_out for one in group_leaks(scores, members, {"class": column})}["3"] == side
    assert not any(one.singled_out for one in group_leaks(scores, members, {"class": column}, leak=False))


def test_a_group_whose_scores_are_only_higher_is_not_singled_out() -> None:
    scores, members, column = leaking(4000, odd=1.0)
    moved = scores + 5.0 * (column == "3")
    assert [one.singled_out for one in group_leaks(moved, members, {"class": column})] == [""] * 5


def test_small_groups_have_counts_but_no_area_and_no_verdict() -> None:
    scores, members, _ = leaking(200, odd=9.0)
    small = np.where(np.arange(200) < 30, "few", "many")
    few, many = group_leaks(scores, members, {"size": small}, called=scores > 2)
    assert few.auc is None
    assert not few.judged
    assert few.tpr is not None
    assert many.auc is not None
    assert not many.judged  # there is no other group to compare it with
    alone = np.array(["a"] * 100 + ["b"] * 100)
    first, second = group_leaks(scores, np.arange(200) < 100, {"side": alone}, called=scores > 2)
    assert first.fpr is None  # it has no non-members
    assert second.tpr is None


def test_perfect_separation_has_an_interval_and_the_largest_groups_are_shown() -> None:
    members = np.tile([True, False], 100)
    (whole,) = group_leaks(members.astype(float), members, {"all": np.zeros(200)})
    assert whole.auc == 1.0
    assert whole.auc_interval is not None
    assert whole.auc_interval.low < 0.97
    column = np.concatenate([np.arange(100), np.full(100, 7)]).astype(np.str_)
    shown = [one.group for one in group_leaks(members.astype(float), members, {"class": column})]
    assert len(shown) == 40
    assert "7" in shown
    tied = group_leaks(np.zeros(200), members, {"half": np.arange(200) < 100})
    assert [(one.auc, one.singled_out) for one in tied] == [(0.5, ""), (0.5, "")]
