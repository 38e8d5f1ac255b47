from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from glasshouse.attacks.learners import Boosted, Linear, Network
from glasshouse.core.arrays import BoolArray, FloatArray


def smooth(records: int, seed: int = 0) -> tuple[FloatArray, BoolArray]:
    """Members by a smooth function of five features that is not a weighted sum."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(records, 5))
    odds = 2 * np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2]
    return rows, random.random(records) < 1 / (1 + np.exp(-odds))


def log_loss(odds: FloatArray, members: BoolArray) -> float:
    return float(np.logaddexp(0, np.where(members, -odds, odds)).mean())


def test_it_learns_a_smooth_function_better_than_a_line_or_trees() -> None:
    (rows, members), (fresh, truth) = smooth(8000), smooth(4000, seed=1)
    found = {
        type(learner).__name__: log_loss(learner.fit(rows, members, seed=0).log_odds(fresh), truth)
        for learner in (Network(), Boosted(), Linear())
    }
    assert found["Network"] < found["Boosted"] < found["Linear"] - 0.05


def test_where_there_is_nothing_to_learn_it_says_so() -> None:
    random = np.random.default_rng(0)
    rows, members = random.normal(size=(60_000, 5)), random.random(60_000) < 0.5
    odds = Network().fit(rows, members, seed=0).log_odds(random.normal(size=(2000, 5)))
    assert np.abs(odds).mean() < 0.2


def test_a_value_beyond_all_that_were_seen_counts_as_the_last_one() -> None:
    rows, members = smooth(3000)
    learned = Network(tail=0.01).fit(rows, members, seed=0)
    edge, beyond = np.zeros((2, 5)), np.zeros((2, 5))
    edge[:, 0] = np.quantile(rows[:, 0], [0.01, 0.99])
    beyond[:, 0] = [-1e12, 1e12]
    np.testing.assert_allclose(learned.log_odds(beyond), learned.log_odds(edge), rtol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 700])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(rows: int) -> None:
    x, members = smooth(rows)
    asked = smooth(10_000, seed=1)[0]  # several blocks
    one, again, other = (Network().fit(x, members, seed=seed).log_odds(asked) for seed in (0, 0, 1))
    assert (one == again).all()
    assert np.isfinite(one).all()
    assert (one != other).any() or rows == 1
    with threadpool_limits(1):
        assert (Network().fit(x, members, seed=0).log_odds(asked) == one).all()


def test_it_takes_no_more_steps_than_it_may() -> None:
    """Rates rise to the highest and fall to 0, over as many steps as there are."""
    rates = Network(epochs=10, steps=400)._rates(16_000)
    assert len(rates) == 320  # ten passes of 32 steps
    assert max(rates) == pytest.approx(0.008, rel=0.01)
    assert rates.index(max(rates)) == 31
    assert rates[-1] == pytest.approx(0.0, abs=1e-9)
    assert len(Network(epochs=10, steps=400)._rates(10**6)) == 400
    assert Network().seconds(10**6, 50) == Network().seconds(10**7, 50) > Network().seconds(1000, 50)
