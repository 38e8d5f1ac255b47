"""The p-value of "any leak at all": against enumeration, against scipy, and on noise."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom, norm, rankdata

from glasshouse.core.errors import InputError
from glasshouse.evaluation import auc, leak_test, roc
from glasshouse.evaluation.leakage import _Attack, _figures, _log_chances, expected_log_p
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


def test_the_figure_that_simulated_targets_rank_first_gets_most_of_the_error() -> None:
    """Power against a weak leak that one of eight attacks sees, and false alarms without one, over 150 made-up runs."""
    random = np.random.default_rng(0)
    shown = {"equal": 0, "first": 0, "null": 0}
    members = np.arange(300) < 150
    for run in range(150):
        scores = {str(k): random.normal(size=300) for k in range(8)}
        leaking = scores | {"0": scores["0"] + 0.25 * members}
        options: dict[str, Any] = {"fprs": [0.05], "permutations": 199, "seed": run}
        shown["equal"] += leak_test(leaking, members, **options).leak
        shown["first"] += leak_test(leaking, members, first=("0", "auc"), **options).leak
        shown["null"] += leak_test(scores, members, first=("0", "auc"), **options).leak
    assert shown["first"] >= shown["equal"] + 30  # 0.69 of the runs with the AUC alone
    assert shown["null"] <= 15  # 7.5 expected; more than 15 have a chance of 0.4 %


def test_corrected_p_values_are_those_of_permutations_written_out() -> None:
    random = np.random.default_rng(4)
    members = np.arange(60) < 30
    scores = {name: random.normal(size=60) + shift * members for name, shift in {"a": 0.3, "b": 0.6, "c": -0.4}.items()}
    found = leak_test(scores, members, first=("a", "auc"), seed=1)

    def surprise(who: np.ndarray) -> dict[str, float]:
        """Log p-values of rank sums, over the shares 0.9, 0.05 and 0.05 of the error."""
        spread = np.sqrt(30 * 30 * 61 / 12)
        sums = {name: rankdata(values)[who].sum() for name, values in scores.items()}
        return {
            name: float(norm.logsf((value - 30 * 61 / 2) / spread)) - np.log(0.9 if name == "a" else 0.05)
            for name, value in sums.items()
        }

    true = surprise(members)
    best = [min(surprise(random.permutation(members)).values()) for _ in range(3000)]
    for name, value in true.items():
        assert found.adjusted[name] == pytest.approx(np.mean(np.array(best) <= value), abs=0.03)
    assert found.p_value == min(found.adjusted.values())
    with pytest.raises(InputError, match="first: .*'d', 'auc'.* is not one of the figures"):
        leak_test(scores, members, first=("d", "auc"))


def test_an_auc_and_a_rate_are_compared_by_how_surprising_they_would_be() -> None:
    """Few strongly exposed records show at a low rate, a small shift of all of them in the AUC."""
    few = expected_log_p({"a": (0.503, 0.002, 0.012)}, 2000, 2000, [0.01, 0.001])
    many = expected_log_p({"a": (0.52, 0.012, 0.001)}, 2000, 2000, [0.01, 0.001])
    assert min(few, key=lambda figure: few[figure]) == ("a", "tpr@0.001")
    assert min(many, key=lambda figure: many[figure]) == ("a", "auc")
    # the chance of at least 24 members before the third non-member is that of 24 among the first 26 records or more
    assert few["a", "tpr@0.001"] == pytest.approx(float(hypergeom.logsf(23, 4000, 2000, 26)), rel=1e-6)
