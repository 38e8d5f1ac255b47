from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import TraceFall


def test_a_record_whose_loss_fell_ranks_above_one_whose_loss_rose() -> None:
    trace = np.linspace([3.0, 1.0, 2.0], [0.1, 4.0, 2.0], 9)
    scores = TraceFall().score(Evidence(target_loss=trace[-1], target_trace=trace))
    assert np.argsort(-scores).tolist() == [0, 2, 1]
    assert scores[2] == pytest.approx(0.0)


def test_it_is_a_limit_and_never_the_strongest_attack() -> None:
    assert TraceFall().knows_truth


def test_a_trace_is_needed_and_a_simulated_target_has_none() -> None:
    members = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=bool)
    evidence = Evidence(
        target_loss=[0, 0], shadow_loss=np.ones((4, 2)), shadow_members=members, target_trace=np.ones((3, 2))
    )
    assert TraceFall().score(evidence).tolist() == [0, 0]
    with pytest.raises(InputError, match="pass trace="):
        TraceFall().score(next(evidence.simulated()).view)
