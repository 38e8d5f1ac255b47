from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from glasshouse import Population
from glasshouse.core.arrays import BoolArray
from glasshouse.pool import ShadowPool

POPULATION = Population(np.arange(20.0).reshape(-1, 1), [0, 1] * 10)


def remember(population: Population, members: BoolArray, seed: int) -> Any:
    return members.copy(), seed


def test_models_are_trained_on_complementary_halves_with_seeds_of_their_own() -> None:
    models = list(ShadowPool.plan(POPULATION, remember, shadows=4, seed=1))
    assert (models[0][0] == ~models[1][0]).all()
    assert len({seed for _, seed in models}) == 4


def test_another_share_is_drawn_independently() -> None:
    pool = ShadowPool.plan(POPULATION, remember, shadows=3, fraction=0.35, seed=1)
    assert pool.members.sum(axis=1).tolist() == [7, 7, 7]


def test_a_larger_pool_starts_with_the_smaller_one() -> None:
    few, many = (list(ShadowPool.plan(POPULATION, remember, shadows=k)) for k in (2, 4))
    assert all((a[0] == b[0]).all() and a[1] == b[1] for a, b in zip(few, many, strict=False))


def test_models_that_train_one_by_one_are_kept_one_by_one() -> None:
    class Many:
        def __call__(self, population: Population, members: BoolArray, seed: int) -> Any:
            return "one"

        def train_many(self, population: Population, members: BoolArray, seeds: Any) -> list[Any]:
            return ["many"] * len(seeds)

    plan = ShadowPool.plan(POPULATION, Many(), shadows=4)
    assert list(plan) == ["many"] * 4
    assert list(dataclasses.replace(plan, together=1)) == ["one"] * 4
