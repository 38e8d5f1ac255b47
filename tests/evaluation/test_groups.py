"""Leak per group: figures as computed by hand, and who is singled out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact

from glasshouse.evaluation import auc, clopper_pearson
from glasshouse.evaluation.groups import group_leaks, worst_cell


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
    small = np.where(np.arange(200) < 8, "few", "many")
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


def flagged_rows(
    *rows: tuple[dict[str, str], int, int, int, int],
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Flags, members and columns from rows of: groups, members, of them flagged, non-members, of them flagged."""
    called: list[bool] = []
    members: list[bool] = []
    columns: dict[str, list[str]] = {name: [] for name in rows[0][0]}
    for groups, inside, hits, outside, wrong in rows:
        called += [True] * hits + [False] * (inside - hits) + [True] * wrong + [False] * (outside - wrong)
        members += [True] * inside + [False] * outside
        for name, group in groups.items():
            columns[name] += [group] * (inside + outside)
    return np.array(called), np.array(members), {name: np.array(values) for name, values in columns.items()}


def sides(called: np.ndarray, members: np.ndarray, columns: dict[str, np.ndarray]) -> dict[str, str]:
    found = group_leaks(called.astype(float), members, columns, called=called)
    return {f"{one.column} {one.group}": one.singled_out for one in found if one.judged}


def test_groups_are_compared_by_the_flags_of_their_members() -> None:
    """0 and 223 of 1 000: they differ, whatever their areas are; flags that non-members have too are no leak."""
    north, south = {"site": "north"}, {"site": "south"}
    apart = flagged_rows((north, 1000, 0, 1000, 0), (south, 1000, 223, 1000, 10))
    assert sides(*apart) == {"site north": "less", "site south": "more"}
    alike = flagged_rows((north, 1000, 50, 1000, 10), (south, 1000, 55, 1000, 9))
    assert sides(*alike) == {"site north": "", "site south": ""}
    higher = flagged_rows((north, 1000, 200, 1000, 10), (south, 1000, 900, 1000, 890))
    assert sides(*higher)["site south"] == ""
    tiny = flagged_rows((north, 5, 5, 5, 0), (south, 1000, 10, 1000, 10))
    assert sides(*tiny) == {"site north": "more", "site south": "less"}
    assert sides(*flagged_rows((north, 4, 4, 9, 0), (south, 1000, 10, 1000, 10))) == {}


def test_the_tests_of_flags_are_those_of_fisher() -> None:
    """The p-value of the worst cell by scipy's own test, times the number of cells."""
    rows = flagged_rows(({"a": "x"}, 20, 8, 30, 1), ({"a": "y"}, 200, 12, 190, 6), ({"a": "z"}, 100, 5, 110, 2))
    worst = worst_cell(*rows)
    assert worst is not None
    within = fisher_exact([[8, 12], [1, 29]], alternative="greater").pvalue
    beside = fisher_exact([[8, 12], [17, 283]], alternative="greater").pvalue
    assert worst.p_value == pytest.approx(3 * max(within, beside))
    assert (worst.name, worst.cells) == ("a x", 3)
    assert worst.tpr_interval == pytest.approx(clopper_pearson(8, 20, confidence=1 - 0.05 / 3))
    assert worst.group_leak.flags == "8 of 20 members and 1 of 30 non-members flagged"


def test_the_worst_cell_may_be_a_combination_that_no_column_shows() -> None:
    """More men are identified than women, and most of all the women with high income."""
    rows = [
        ({"sex": "men", "income": "high"}, 400, 80, 400, 4),
        ({"sex": "men", "income": "low"}, 400, 80, 400, 4),
        ({"sex": "women", "income": "high"}, 30, 29, 30, 0),
        ({"sex": "women", "income": "low"}, 800, 5, 800, 5),
    ]
    flags = flagged_rows(*rows)
    assert sides(*flags)["sex men"] == "more"
    worst = worst_cell(*flags)
    assert worst is not None
    assert (worst.parts, worst.cells) == ((("sex", "women"), ("income", "high")), 8)
    rows[2] = ({"sex": "women", "income": "high"}, 30, 7, 30, 0)
    plain = worst_cell(*flagged_rows(*rows))
    assert plain is not None
    assert plain.name == "sex men"  # the combination is not surely more exposed than that
    evenly = [({"sex": sex, "income": income}, 200, 60, 200, 2) for sex in ("men", "women") for income in ("h", "l")]
    assert worst_cell(*flagged_rows(*evenly)) is None


def test_rare_values_are_looked_at_together() -> None:
    rare = [({"class": f"rare {number}"}, 3, 3, 3, 0) for number in range(4)]
    worst = worst_cell(*flagged_rows(({"class": "usual"}, 500, 5, 500, 5), *rare))
    assert worst is not None
    assert (worst.name, worst.identified, worst.members, worst.cells) == ("class 4 rare values", 12, 12, 2)
    ids = np.arange(1012).astype(np.str_)
    called, members, _ = flagged_rows(({"class": "usual"}, 500, 5, 512, 5))
    assert worst_cell(called, members, {"id": ids}) is None


def test_without_a_leak_no_group_differs_and_no_cell_is_worst() -> None:
    """In at most about 5 % of audits each, and exact tests of few flags keep far below that."""
    random = np.random.default_rng(0)
    columns = {name: random.integers(values, size=1500).astype(np.str_) for name, values in (("a", 10), ("b", 3))}
    differ = worst = 0
    for _ in range(200):
        members, called = random.random(1500) < 0.5, random.random(1500) < 0.02
        differ += any(sides(called, members, columns).values())
        worst += worst_cell(called, members, columns) is not None
    assert differ <= 16  # 5 % and two standard errors
    assert worst <= 16
