from __future__ import annotations

from typing import Any

import numpy as np

from glasshouse import Population
from glasshouse.evidence import Query, collect
from glasshouse.pool import ShadowPool
from glasshouse.population import BoolArray

POPULATION = Population(np.arange(8.0).reshape(-1, 1), [0, 1] * 4, ids=list("abcdefgh"))


def by_heart(population: Population, members: BoolArray, seed: int) -> Any:
    """A model that is sure of its members and knows nothing of the others."""
    sure = np.where(population.y == 1, 9.0, -9.0) * members
    return lambda x: sure[x[:, 0].astype(int)]


def test_each_models_losses_stand_in_its_own_row() -> None:
    pool = ShadowPool.plan(POPULATION, by_heart, shadows=4)
    evidence, answers = collect(by_heart(POPULATION, pool.members[0], 0), pool, how=Query(keep_logits=True))
    assert ((evidence.shadow_loss < 0.1) == pool.members).all()
    assert (evidence.target_loss == evidence.shadow_loss[0]).all()
    assert evidence.ids.tolist() == list("abcdefgh")
    assert evidence.shadow_logits is not None
    assert evidence.shadow_logits.shape == (4, 8, 2)
    assert answers.loss is evidence.target_loss or (answers.loss == evidence.target_loss).all()


def test_one_model_is_alive_at_a_time() -> None:
    import weakref

    alive: list[weakref.ref[Any]] = []

    class Model:
        def __call__(self, x: np.ndarray) -> np.ndarray:
            return np.zeros(len(x))

    def train(population: Population, members: BoolArray, seed: int) -> Any:
        assert sum(ref() is not None for ref in alive) <= 1  # the one that is about to be let go
        model = Model()
        alive.append(weakref.ref(model))
        return model

    collect(Model(), ShadowPool.plan(POPULATION, train, shadows=6))
    assert len(alive) == 6
