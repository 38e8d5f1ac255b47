"""Guesses by rank, and the choice of them on simulated targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.evaluation.privacy.bounds import DESIGNS, EVERY_RECORD, Design, count_right, shares_right
from glasshouse.evaluation.privacy.claim import chosen_guesses, judge_claim, most_often_right

SHARES = st.sampled_from([0.005, 0.05, 0.2, 0.35])


@given(st.integers(4, 300), SHARES, st.sampled_from(["both", "members", "others"]), st.integers(0, 99))
def test_counting_equals_a_loop_over_sorted_records(records: int, share: float, side: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores, members = random.normal(size=records), random.permutation(records) < records // 2
    design = Design(share * (side != "others"), share * (side != "members"))
    ranked = sorted(range(records), key=lambda record: -scores[record])
    size = min(max(1, int(share * records)), records // 2)
    right = 0
    for record in ranked[:size] if design.members else []:
        right += bool(members[record])
    for record in ranked[-size:] if design.others else []:
        right += not members[record]
    found = count_right(scores, members, design)
    assert (found.correct, found.made) == (right, size * (2 if side == "both" else 1))
    assert found.possible == {"both": records, "members": members.sum(), "others": (~members).sum()}[side]


def test_ties_are_broken_without_the_truth_and_without_the_order_of_the_records() -> None:
    """All scores are equal and members come first: the guesses must be right in about a half."""
    members = np.arange(2000) < 1000
    found = count_right(np.zeros(2000), members, EVERY_RECORD)
    assert 900 < found.correct < 1100
    assert found == count_right(np.zeros(2000), members, EVERY_RECORD)


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_guesses_on_both_sides_leave_out_the_surplus_of_the_larger_group(share: float) -> None:
    random = np.random.default_rng(0)
    members = random.permutation(1000) < 1000 * share
    both = count_right(random.normal(size=1000), members, EVERY_RECORD)
    assert (both.made, both.possible, both.prior) == (200, 200, 0.5)
    assert both.correct < 130
    alone = count_right(random.normal(size=1000), members, Design(0.05, 0.0))
    assert alone.made == 50
    assert alone.prior == pytest.approx(share)


def test_shares_at_even_odds_say_the_same_for_any_share_of_members() -> None:
    random = np.random.default_rng(0)
    found = []
    for share in (0.2, 0.5, 0.8):
        members = random.random(200_000) < share
        found.append(shares_right(members + random.normal(size=200_000), members))
    place = DESIGNS.index(Design(0.05, 0.0))
    assert np.ptp([row[place] for row in found]) < 0.15  # the same share of the records is another FPR
    assert np.ptp([row[-1] for row in found]) < 0.01


def test_the_choice_is_made_on_simulated_targets_and_never_by_the_truth() -> None:
    random = np.random.default_rng(0)
    members = random.random(1000) < 0.5
    scores = {"weak": members + random.normal(size=1000), "strong": random.normal(size=1000)}
    practice = {name: [0.5] * (len(DESIGNS) + 1) for name in scores}
    practice["strong"][DESIGNS.index(Design(0.1, 0.1))] = 0.9
    practice["strong"][-1] = 0.8
    kept = {name: tuple(values) for name, values in practice.items()}
    for truth in (members, random.permutation(members)):
        ((guessed, _),) = chosen_guesses(scores, truth, practice=kept, delta=1e-5, confidence=0.95)
        assert (guessed.attack, guessed.members, guessed.others, guessed.tried) == ("strong", 100, 100, 1)
        assert most_often_right(scores, kept, at=-1) == ["strong"]


def test_a_target_that_leaks_unlike_the_simulated_ones_is_guessed_all_the_same() -> None:
    members = np.arange(1000) >= 500
    flat = (0.5,) * (len(DESIGNS) + 1)
    verdict = judge_claim(None, {"a": np.arange(1000.0)}, members=members, practice={"a": flat})
    assert verdict.epsilon > 3


def test_without_simulated_targets_several_guesses_share_the_error() -> None:
    members = np.arange(1000) >= 500
    scores = np.arange(1000.0) + 400 * np.random.default_rng(0).normal(size=1000)
    alone = judge_claim(None, {"a": scores}, members=members)
    among = judge_claim(None, {"a": scores, "b": -scores}, members=members)
    assert 0 < among.epsilon < alone.epsilon
    assert 0 < among.independent.mu < alone.independent.mu
    assert among.guessed is not None
    assert among.guessed.tried == 6
    assert judge_claim(None, {}, members=members).epsilon == 0.0


def test_two_records_are_enough_for_a_verdict() -> None:
    members = np.array([True, False])
    assert judge_claim(None, {"a": np.array([1.0, 0.0])}, members=members).epsilon == 0.0
