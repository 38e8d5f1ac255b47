from __future__ import annotations

import numpy as np
import pytest

from glasshouse.attacks.sides import moments


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
