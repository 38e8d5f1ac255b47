from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glasshouse import Population
from glasshouse.core.arrays import BoolArray
from glasshouse.pool.shadow_pool import groups_of, train_group

MEMBERS = np.eye(5, 6, dtype=bool)
POPULATION = Population(np.arange(6.0).reshape(-1, 1), [0, 1, 0, 1, 0, 1])


def test_groups_are_consecutive_and_the_last_may_be_smaller() -> None:
    groups = groups_of(MEMBERS, [10, 11, 12, 13, 14], 2)
    assert [group.indices for group in groups] == [(0, 1), (2, 3), (4,)]
    assert [group.seeds for group in groups] == [(10, 11), (12, 13), (14,)]
    assert (np.concatenate([group.members for group in groups]) == MEMBERS).all()


def test_a_trainer_of_many_is_given_many() -> None:
    class Many:
        def __call__(self, population: Population, members: BoolArray, seed: int) -> Any:
            return ("one", seed)

        def train_many(self, population: Population, members: BoolArray, seeds: Sequence[int]) -> list[Any]:
            return [("many", seed) for seed in seeds]

    first, *_, last = groups_of(MEMBERS, [0, 1, 2, 3, 4], 2)
    assert train_group(POPULATION, Many(), first) == [("many", 0), ("many", 1)]
    assert train_group(POPULATION, Many(), last) == [("one", 4)]
