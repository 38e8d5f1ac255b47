from __future__ import annotations

import numpy as np
import pytest

from glasshouse.attacks.stacking.learners import Boosted, Linear


def test_at_most_so_many_examples_are_learned_from() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(4000, 2))
    members = rows[:, 0] > 0
    few = Boosted(examples=500, rounds=10, fits=1).fit(rows, members, seed=0)
    all_ = Boosted(rounds=10, fits=1).fit(rows, members, seed=0)
    assert (few.log_odds(rows) != all_.log_odds(rows)).any()
    assert ((few.log_odds(rows) > 0) == members).mean() > 0.9


def test_a_single_wild_value_does_not_rule_the_line() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(2000, 1))
    members = random.random(2000) < 1 / (1 + np.exp(-2 * rows[:, 0]))
    wild = rows.copy()
    wild[0] = 1e6
    near, far = (Linear(tail=0.01).fit(some, members, seed=0).log_odds(np.array([[1.0]])) for some in (rows, wild))
    assert near[0] == pytest.approx(far[0], abs=0.05)
    assert near[0] == pytest.approx(2.0, abs=0.4)
