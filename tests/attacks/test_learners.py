from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from glasshouse.attacks.learners import Boosted, Linear


def test_a_single_wild_value_does_not_rule_the_line() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(2000, 1))
    members = random.random(2000) < 1 / (1 + np.exp(-2 * rows[:, 0]))
    wild = rows.copy()
    wild[0] = 1e6
    near, far = (Linear(tail=0.01).fit(some, members, seed=0).log_odds(np.array([[1.0]])) for some in (rows, wild))
    assert near[0] == pytest.approx(far[0], abs=0.05)
    assert near[0] == pytest.approx(2.0, abs=0.4)


@pytest.mark.parametrize("seed", range(3))
def test_the_line_is_the_one_that_another_solver_finds(seed: int) -> None:
    """The twin: L-BFGS in double precision on columns made here one by one."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(1000, 4)) * 10.0 ** np.arange(-3, 1) + 5
    members = random.random(1000) < 1 / (1 + np.exp(-(rows[:, 3] - 5) - (rows[:, 0] - 5) * 1000))
    columns = [(column - column.mean()) / column.std() for column in rows.T]
    both = np.stack([*columns, *[column**2 for column in columns]], axis=1)
    twin = LogisticRegression(C=0.1, tol=1e-8, max_iter=5000).fit(both, members)
    found = Linear(tail=0.0).fit(rows, members, seed=0).log_odds(rows)
    np.testing.assert_allclose(found, twin.decision_function(both), atol=1e-3)


def test_several_fits_are_averaged_and_none_is_surer_than_the_data_allow() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    members = rows[:, 0] > 0
    one, both = (Boosted(rounds=5, fits=fits).fit(rows, members, seed=0).log_odds(rows) for fits in (1, 2))
    assert (one != both).any()
    sure = Boosted(rounds=200, rate=5.0, smallest_leaf=1, penalty=0.0).fit(rows, members, seed=0).log_odds(rows)
    assert np.abs(sure).max() <= 16


def test_a_guide_is_one_more_feature_and_helps_few_trees_with_a_weighted_sum() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(3000, 6))
    members = random.random(3000) < 1 / (1 + np.exp(-rows.sum(axis=1)))
    learn, fresh = rows[:2000], rows[2000:]
    plain, guided = Boosted(rounds=10), Boosted(rounds=10, guide=Linear())
    found = guided.fit(learn, members[:2000], seed=0).log_odds(fresh)
    line = Linear().fit(learn, members[:2000], seed=0)
    wider = [np.column_stack([some, line.log_odds(some)]) for some in (learn, fresh)]
    np.testing.assert_array_equal(found, plain.fit(wider[0], members[:2000], seed=0).log_odds(wider[1]))
    alone = plain.fit(learn, members[:2000], seed=0).log_odds(fresh)
    missed = [np.logaddexp(0, np.where(members[2000:], -odds, odds)).mean() for odds in (found, alone)]
    assert missed[0] < missed[1] - 0.02
