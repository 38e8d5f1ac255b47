"""Lists of records with a bounded share of errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from glasshouse import Evidence
from glasshouse.attacks import create
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import run_attack
from glasshouse.evaluation.thresholds import DISCOVERY_LEVEL, conformal_p_values, discovery_levels
from tests.strategies import scores_and_members


@settings(max_examples=40)
@given(st.lists(scores_and_members(), min_size=1, max_size=4), hnp.arrays(np.float64, 5, elements=st.floats(-2, 2)))
def test_a_p_value_counts_simulated_non_members_one_by_one(
    pairs: list[tuple[FloatArray, BoolArray]], scores: FloatArray
) -> None:
    others = [float(s) for theirs, members in pairs for s, member in zip(theirs, members, strict=True) if not member]
    plain = [(1 + sum(other >= score for other in others)) / (1 + len(others)) for score in scores]
    assert conformal_p_values(scores, pairs).tolist() == plain


@given(
    hnp.arrays(np.float64, st.integers(1, 20), elements=st.sampled_from([0.01, 0.02, 0.05, 0.3, 1.0])),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_a_record_is_listed_from_its_level_on(p_values: FloatArray, prior: float) -> None:
    """Benjamini and Hochberg step by step: the largest k with p_(k) ≤ k·level / M, and the first k are listed.

    M is how many non-members there are: all records, or a stated share of them.
    """
    levels = discovery_levels(p_values, prior=prior)
    for level in (0.02, 0.05, 0.1, 0.2, 0.4):
        ranked = np.sort(p_values)
        others = (1 - prior) * len(ranked)
        kept = [k for k in range(1, len(ranked) + 1) if ranked[k - 1] <= k * level / others * (1 + 1e-12)]
        listed = p_values <= ranked[max(kept) - 1] if kept else np.zeros(len(ranked), dtype=bool)
        np.testing.assert_array_equal(levels <= level * (1 + 1e-12), listed)


def lists(attack: str, *, share: float, prior: float) -> tuple[float, float]:
    """Mean share of wrong records in lists at 10 %, and mean share of the members that they hold.

    Margins are N(μ_v + 3·member, 1); a share of the records trained the target, and another may be stated.
    """
    wrong, held = [], []
    for seed in range(25):
        random = np.random.default_rng(seed)
        half = random.random((4, 1500)).argsort(axis=1) < 750
        members = np.concatenate([half, ~half, [random.random(1500) < share]])
        loss = np.logaddexp(0.0, -random.normal(size=1500) - 3 * members - random.normal(size=members.shape))
        evidence = Evidence(target_loss=loss[8], shadow_loss=loss[:8], shadow_members=members[:8])
        outcome = run_attack(create(attack, shared={"prior": prior}), evidence, fprs=[0.05], prior=prior)
        assert outcome.discovery_levels is not None
        listed = outcome.discovery_levels <= DISCOVERY_LEVEL
        wrong.append(listed[~members[8]].sum() / max(listed.sum(), 1))
        held.append(listed[members[8]].mean())
    return float(np.mean(wrong)), float(np.mean(held))


@pytest.mark.parametrize("attack", ["base", "lira"])
def test_a_list_at_ten_percent_is_wrong_in_ten_percent_where_half_are_members(attack: str) -> None:
    """Without the stated share of members it was a list at 5 %."""
    wrong, held = lists(attack, share=0.5, prior=0.5)
    assert wrong == pytest.approx(0.1, abs=0.012)
    assert held > 0.5


def test_a_list_is_safe_where_more_are_members_than_is_stated_and_is_not_where_fewer_are() -> None:
    """The share of errors is (1 - λ') / (1 - λ) times the stated one, λ' the true share of members."""
    assert lists("lira", share=0.5, prior=0.2)[0] == pytest.approx(0.1 * 0.5 / 0.8, abs=0.012)
    assert lists("lira", share=0.2, prior=0.5)[0] == pytest.approx(0.1 * 0.8 / 0.5, abs=0.025)
