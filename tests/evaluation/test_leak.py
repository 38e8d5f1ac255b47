"""The p-value of "any leak at all": against enumeration, against scipy, and on noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.evaluation import auc, leak_test, roc
from glasshouse.evaluation.leak import _Attack, _figures, _log_chances
from glasshouse.evaluation.roc import allowed_wrong


@settings(max_examples=50, deadline=None)
@given(
    scores=st.lists(st.integers(0, 6), min_size=4, max_size=40),
    share=st.floats(0.2, 0.8),
    fpr=st.sampled_from([0.05, 0.1, 0.3, 0.5]),
    seed=st.integers(0, 99),
)
def test_counts_of_an_arrangement_are_those_of_its_exact_roc(
    scores: list[int], share: float, fpr: float, seed: int
) -> None:
    """Ties, few records, rates that no threshold reaches: the quick counts against the ROC written out."""
    values = np.array(scores, dtype=np.float64)
    count = min(len(values) - 1, max(1, round(share * len(values))))
    random = np.random.default_rng(seed)
    arrangements = np.stack([random.permutation(len(values)) < count for _ in range(5)])
    wrong = allowed_wrong(fpr, len(values) - count)
    found = _figures([_Attack.of(values)], arrangements, [wrong])
    for members, (ranks, right) in zip(arrangements, found, strict=True):
        curve = roc(values, members)
        assert right == round(curve.tpr[curve.point_at(fpr)] * count)
        area = (ranks - count * (count + 1) / 2) / (count * (len(values) - count))
        assert area == pytest.approx(auc(values, members))


def test_the_p_value_of_one_attack_is_that_of_all_arrangements() -> None:
    """Nine records have 84 arrangements of three members: the permutation p-value against all of them."""
    scores = np.array([0.3, 2.1, 1.7, -0.4, 0.9, 1.1, -1.2, 0.1, 1.6])
    members = np.isin(np.arange(9), [1, 2, 5])
    arrangements = [np.isin(np.arange(9), chosen) for chosen in itertools.combinations(range(9), 3)]
    exact = np.mean([auc(scores, who) >= auc(scores, members) for who in arrangements])
    assert leak_test({"one": scores}, members).p_value == pytest.approx(exact, abs=0.03)


def test_the_chance_of_a_count_is_that_of_the_negative_hypergeometric_distribution() -> None:
    """Members before the third non-member, in 20 000 random orders of 12 members among 30 records."""
    random = np.random.default_rng(0)
    orders = np.stack([random.permutation(30) < 12 for _ in range(20_000)])
    counts = _figures([_Attack.of(np.arange(30.0))], orders, [2])[:, 1:]
    expected = [(counts[:, 0] >= count).mean() for count in range(7)]
    found = np.exp(_log_chances(np.arange(7.0)[:, None], np.arange(30) < 12, [2]))[:, 0]
    assert found == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_six_attacks_on_noise_cry_wolf_in_one_run_of_twenty(share: float) -> None:
    """Attacks that depend on each other, as real ones do; with 400 runs the rate is within 3 % of the nominal 5 %."""
    random = np.random.default_rng(0)
    alarms = 0
    for run in range(400):
        members = random.permutation(300) < 300 * share
        common = random.normal(size=300)
        scores = {f"attack {k}": common + k * random.normal(size=300) for k in range(6)}
        alarms += leak_test(scores, members, fprs=[0.05], permutations=99, seed=run).leak
    assert 0.02 <= alarms / 400 <= 0.08


def test_a_leak_at_the_top_alone_is_found_although_the_area_says_nothing() -> None:
    random = np.random.default_rng(1)
    members = np.arange(2000) < 1000
    scores = random.normal(size=2000)
    scores[:40] += 6.0  # forty of a thousand members stand out
    found = leak_test({"noise": random.normal(size=2000), "tail": scores}, members, fprs=[0.01])
    assert found.leak
    assert (found.attack, found.figure, found.tested) == ("tail", "tpr@0.01", 4)


def test_the_same_seed_gives_the_same_p_value_and_no_attack_is_refused() -> None:
    random = np.random.default_rng(2)
    scores, members = {"one": random.normal(size=100)}, np.arange(100) < 50
    assert leak_test(scores, members, seed=3) == leak_test(scores, members, seed=3)
    with pytest.raises(InputError, match="no attack"):
        leak_test({}, members)


def test_the_true_labels_count_as_one_of_the_arrangements() -> None:
    """So no p-value is 0, and an attack that says nothing has a p-value of 1."""
    members = np.arange(60) < 30
    assert leak_test({"a": members.astype(np.float64)}, members, permutations=99).p_value == pytest.approx(1 / 100)
    assert leak_test({"a": np.zeros(60)}, members, permutations=99).p_value == 1.0
