"""The bound on ε of a rating: what it rests on, and that more of the same does not lower it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import beta

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import PrivacyVerdict, judge_claim, roc
from glasshouse.evaluation.intervals import ratio_bound
from glasshouse.evaluation.privacy.claim import LOOK_ERROR, rated_epsilon
from glasshouse.report.decision.conclusion import _proven
from tests.strategies import scores_and_members


def test_few_records_that_are_told_apart_are_guesses_that_are_all_right() -> None:
    """Of 60 records 21 at each end are guessed: Clopper and Pearson's bound, with a quarter of the error."""
    scores, members = np.arange(60.0), np.arange(60) >= 30
    expected = logit(beta.ppf(LOOK_ERROR / 4, 42, 1))
    assert rated_epsilon({"a": scores}, members, practice={}) == pytest.approx(expected)
    verdict = judge_claim(None, {"a": scores}, members=members)
    assert verdict.rated == pytest.approx(expected)
    assert judge_claim(None, {"a": scores}, members=members, leak=False).rated == 0.0


def test_a_run_of_before_is_rated_by_the_bound_that_it_has() -> None:
    looks = [list(_proven(PrivacyVerdict(pure=2.0, rated=rated))) for rated in (None, 1.0, 1.7)]
    assert [len(one) for one in looks] == [1, 0, 1]
    assert "ε ≥ 2.00" in looks[0][0].reason
    assert "ε ≥ 1.70" in looks[2][0].reason


def test_many_are_a_matter_of_both_ends_and_attacks_without_simulated_targets_share_the_error() -> None:
    random = np.random.default_rng(0)
    members = random.random(4000) < 0.5
    strong, noise = random.normal(size=4000) + 2.0 * members, random.normal(size=4000)
    alone, both = (np.log(ratio_bound(roc(strong, members), error=LOOK_ERROR / 2 / tried)) for tried in (1, 2))
    scores = {"noise": noise, "strong": strong}
    assert rated_epsilon(scores, members, practice={}) == pytest.approx(both)
    known = {"strong": (0.9,) * 28, "noise": (0.5,) * 28}
    assert rated_epsilon(scores, members, practice=known) == pytest.approx(alone)
    assert alone > both > 2.0


def test_a_prior_that_is_not_even_is_no_leak() -> None:
    """Nine of ten are members, and the lower half is tied: nine of ten guesses are right, all of them "member"."""
    random = np.random.default_rng(1)
    members = random.permutation(1000) < 900
    scores = np.maximum(0.0, random.normal(size=1000))
    assert rated_epsilon({"a": scores}, members, practice={}) == 0.0


@given(scores_and_members(), st.integers(2, 6))
@settings(max_examples=30)
def test_the_same_proportions_in_more_records_do_not_lower_it(pair: tuple[FloatArray, BoolArray], copies: int) -> None:
    scores, members = pair
    once = rated_epsilon({"a": scores}, members, practice={})
    more = rated_epsilon({"a": np.tile(scores, copies)}, np.tile(members, copies), practice={})
    assert more >= once - 1e-8
