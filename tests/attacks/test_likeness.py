from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.attacks import cross_fit as targets
from glasshouse.attacks.cross_fit import LARGEST_UNLIKENESS, Likeness, steadied
from glasshouse.attacks.prior import prior_weights


def test_targets_of_the_same_kind_are_not_unlike() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        like = Likeness.of(random.normal(random.normal(0, 0.1, (8, 1)), 1.0, (8, 2000)))
        assert like.unlikeness(random.normal(random.normal(0, 0.1), 1.0, 2000)) < LARGEST_UNLIKENESS


@pytest.mark.parametrize(("shift", "scale"), [(2.0, 1.0), (0.0, 3.0), (-1.0, 0.5)])
def test_another_scale_is_unlike_and_matched(shift: float, scale: float) -> None:
    random = np.random.default_rng(0)
    like = Likeness.of(random.normal(size=(8, 2000)))
    other = shift + scale * random.normal(size=2000)
    assert like.unlikeness(other) > LARGEST_UNLIKENESS
    matched = like.matched(other)
    assert like.unlikeness(matched) < LARGEST_UNLIKENESS
    assert (np.argsort(matched) == np.argsort(other)).mean() > 0.9  # the ends of the scale are flat


def test_equal_answers_stay_equal() -> None:
    like = Likeness.of(np.random.default_rng(0).normal(size=(4, 100)))
    matched = like.matched(np.array([3.0, 1.0, 3.0, 3.0]))
    assert matched[0] == matched[2] == matched[3] > matched[1]


def test_a_simple_attack_moves_the_order_and_not_the_values() -> None:
    random = np.random.default_rng(0)
    odds, simple = random.normal(size=(2, 500))
    found = steadied(odds, simple)
    assert np.sort(found) == pytest.approx(np.sort(odds))
    learned, plain = (np.corrcoef(found, each)[0, 1] for each in (odds, simple))
    assert learned == pytest.approx(0.8, abs=0.05)  # 4 : 3 : 5, as independent normals have it
    assert plain == pytest.approx(0.6, abs=0.05)
    assert steadied(odds, odds) == pytest.approx(odds)


def test_absurd_answers_are_unlike_and_not_an_error() -> None:
    like = Likeness.of(np.random.default_rng(0).normal(size=(8, 1000)))
    assert 5 < like.unlikeness(np.full(1000, -1e300)) <= 1e6


@given(seed=st.integers(0, 50))
def test_weights_count_answers_as_often_as_copies(seed: int) -> None:
    """All weights of a target are whole numbers here, so its answers can be repeated instead."""
    random = np.random.default_rng(seed)
    answers, times = random.normal(size=(4, 60)), random.integers(1, 4, size=(4, 60))
    times[:, 0] += 240 - times.sum(axis=1)  # copies must have equally many records
    weighted = Likeness.of(answers, times.astype(float))
    copied = Likeness.of(np.stack([np.repeat(row, count) for row, count in zip(answers, times, strict=True)]))
    np.testing.assert_allclose(weighted.centre[:2], copied.centre[:2])
    gap = np.diff(np.sort(answers.ravel())).max() + np.diff(np.sort(answers, axis=1)).max()  # a copy has its own middle
    np.testing.assert_allclose(weighted.centre[2:], copied.centre[2:], atol=gap)
    np.testing.assert_allclose(weighted.quantiles, copied.quantiles, atol=gap)


def test_a_mixture_with_other_shares_is_matched_to_that_mixture() -> None:
    """Members answer 4 more. Of the target's answers a tenth are members', of the simulated targets' one half."""
    random = np.random.default_rng(0)
    members = random.random((8, 4000)) < 0.5
    answers = random.normal(size=(8, 4000)) + 4 * members
    who = random.random(4000) < 0.1
    target = random.normal(size=4000) + 4 * who
    like = Likeness.of(answers, prior_weights(members, 0.1))
    assert like.unlikeness(target) < LARGEST_UNLIKENESS < Likeness.of(answers).unlikeness(target)
    matched = like.matched(2 * target + 3)
    assert np.quantile(matched - target, [0.05, 0.95]) == pytest.approx([0, 0], abs=0.25)


def test_many_answers_are_matched_by_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = np.random.default_rng(0).normal(size=(4, 3000))
    weights = np.random.default_rng(1).uniform(0.5, 1.5, size=(4, 3000))
    all_of_them = Likeness.of(answers, weights)
    monkeypatch.setattr(targets, "_ANSWERS", 1000)
    some = Likeness.of(answers, weights)
    assert (some.centre[:2] == all_of_them.centre[:2]).all()
    assert some.centre[2:] == pytest.approx(all_of_them.centre[2:], abs=0.03)
    middle = slice(200, 1800)
    assert some.quantiles[middle] == pytest.approx(all_of_them.quantiles[middle], abs=0.12)
    assert (some.quantiles != all_of_them.quantiles).any()


def test_ties_count_half_below_a_point_so_that_up_and_down_are_alike() -> None:
    """Answers in twentieths: a target is as far from the others as its mirror image is from theirs."""
    random = np.random.default_rng(0)
    answers = random.binomial(20, 0.8, size=(9, 500)) / 20
    like, mirrored = Likeness.of(answers[1:]), Likeness.of(-answers[1:])
    assert like.unlikeness(answers[0]) == pytest.approx(mirrored.unlikeness(-answers[0]))
    assert like.unlikeness(answers[0]) < 3
