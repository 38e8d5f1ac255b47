from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse import Evidence, InputError
from glasshouse.attacks.in_out_moments import (
    left_out,
    moments,
    moments_among,
    side_moments,
    simulated_moments,
    simulated_sets,
)
from glasshouse.attacks.regressed import mean_margins
from glasshouse.core.numerics import loss_to_margin
from glasshouse.evidence.simulation import rows_without
from tests.strategies import random_evidence


def test_moments_are_those_of_the_chosen_entries_of_each_column() -> None:
    random = np.random.default_rng(0)
    values, who = random.normal(size=(9, 5)), random.random((9, 5)) < 0.5
    who[0] = True
    found = moments(values, who)
    for v in range(5):
        chosen = values[who[:, v], v]
        assert found.models[v] == len(chosen)
        assert found.mean[v] == pytest.approx(chosen.mean())
        assert found.squares[v] == pytest.approx(len(chosen) * chosen.var())


@given(random_evidence(min_records=2, min_models=4))
def test_means_of_simulated_targets_are_those_of_their_own_evidence(evidence: Evidence) -> None:
    targets = simulated_moments(evidence, [False, True])
    for fast, slow in zip(targets, evidence.simulated(), strict=True):
        assert (mean_margins(fast.sides) == mean_margins(side_moments(slow.view, "online"))).all()
        assert (fast.statistic == loss_to_margin(slow.view.target_loss)).all()
        assert (fast.members == slow.members).all()


@settings(deadline=None)
@given(evidence=random_evidence(min_records=2, min_models=4), records=st.integers(1, 40))
def test_few_sets_at_once_and_margins_by_block_change_no_bit(evidence: Evidence, records: int) -> None:
    """The plain twin holds the statistic of the whole pool, and the moments of all sets."""
    sides, members = [False, True], evidence.shadow_members
    every = [targets for targets, _ in simulated_sets(members)]
    whole = [moments_among(evidence.shadow_statistic, members == inside, [np.array([[0]])]) for inside in sides]
    parts = [moments_among(evidence, members == inside, [np.array([[0]])]) for inside in sides]
    for one, other in zip(whole, parts, strict=True):
        assert all((a == b).all() for a, b in zip(one, other, strict=True))
    plain = list(simulated_moments(evidence, sides))
    with patch("glasshouse.attacks.in_out_moments._ROOM", records):
        assert [k for targets, _ in simulated_sets(members) for k, _ in targets] == list(range(evidence.models))
        assert len(list(simulated_sets(members))) >= len(every)
        for kept, again in zip(plain, simulated_moments(evidence, sides), strict=True):
            assert (kept.statistic == again.statistic).all()
            for mine, its in zip(kept.sides, again.sides, strict=True):
                assert all((a == b).all() for a, b in zip(mine, its, strict=True))


def test_a_record_without_in_models_among_the_references_is_refused() -> None:
    members = np.array([[1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    evidence = Evidence(target_loss=[0.1, 0.2], shadow_loss=np.ones((4, 2)), shadow_members=members)
    with pytest.raises(InputError, match="has 0 in-models"):
        list(simulated_moments(evidence, [True]))


@given(
    models=st.integers(2, 40),
    width=st.sampled_from([2, 3, 5, 64]),
    by_record=st.booleans(),
    offset=st.sampled_from([0.0, 1e9, -1e100]),
    seed=st.integers(0, 1000),
)
def test_moments_without_some_models_are_those_of_the_others(
    models: int, width: int, by_record: bool, offset: float, seed: int
) -> None:
    """In groups of groups, as in one sum; a common offset, which a difference of two sums would not survive, too."""
    random, records = np.random.default_rng(seed), 5
    values, who = random.normal(size=(models, records)) + offset, random.random((models, records)) < 0.6
    order = random.permuted(np.tile(np.arange(models)[:, None], records if by_record else 1), axis=0)
    sets = [np.sort(order[:1], axis=0), np.sort(order[:2], axis=0), order[:0]]
    with patch("glasshouse.attacks.in_out_moments._WIDTH", width):
        found = moments_among(values, who, sets)
        means = moments_among(values, who, sets)
    assert (means.models == found.models).all()
    assert (means.mean == found.mean).all()
    for number, left in enumerate(sets):
        rows = np.broadcast_to(rows_without(left, models), (models - len(left), records))
        assert (left_out(rows, models) == left).all()
        for v in range(records):
            kept = values[rows[:, v], v][who[rows[:, v], v]]
            assert found.models[number, v] == len(kept)
            if len(kept):
                exact = np.longdouble(kept)
                assert found.mean[number, v] == pytest.approx(float(exact.mean()), rel=1e-13, abs=1e-13)
                rounding = len(kept) * (4 * np.spacing(abs(offset))) ** 2
                squares = float(((exact - exact.mean()) ** 2).sum())
                assert found.squares[number, v] == pytest.approx(squares, rel=1e-6, abs=1e-25 + 4 * rounding)


def test_in_a_usual_pool_each_bit_is_that_of_a_plain_sum_over_the_others() -> None:
    random = np.random.default_rng(0)
    values, who = random.normal(size=(64, 300)), random.random((64, 300)) < 0.5
    sets = [np.array([[3]]), np.array([[3], [60]])]
    found = moments_among(values, who, sets)
    for number, left in enumerate(sets):
        rows = rows_without(left, 64)[:, 0]
        plain = moments(values[rows], who[rows])
        assert all((part[number] == one).all() for part, one in zip(found, plain, strict=True))
