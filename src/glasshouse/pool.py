"""The shadow pool: who trains which shadow model, and the models themselves, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from glasshouse.population import BoolArray, as_members, complementary_halves, random_subsets, record_count
from glasshouse.randomness import seed_for
from glasshouse.training.trainer import Trainer

__all__ = ["ShadowPool"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ShadowPool:
    """Shadow models of one population and trainer, each trained when it is asked for.

    Args:
        population: the records: a `Population`, or a graph with ``num_nodes``.
        trainer: how a model is trained.
        members: [K, N] who trains which model.
        seed: from which each model's own seed follows.

    Example:
        >>> import numpy as np
        >>> from glasshouse.population import Population
        >>> population = Population(np.arange(4.0).reshape(-1, 1), [0, 1, 0, 1])
        >>> pool = ShadowPool.plan(population, lambda population, members, seed: members.sum(), shadows=2)
        >>> [int(model) for model in pool]
        [2, 2]
    """

    population: Any
    trainer: Trainer
    members: BoolArray
    seed: int = 0

    def __post_init__(self) -> None:
        shape = (len(self.members), record_count(self.population))
        object.__setattr__(self, "members", as_members(self.members, shape, place="shadow members"))

    @classmethod
    def plan(
        cls, population: Any, trainer: Trainer, *, shadows: int = 8, fraction: float = 0.5, seed: int = 0
    ) -> ShadowPool:
        """A pool by the paper's Algorithm 1; by independent draws where ``fraction`` is not one half."""
        if fraction == 0.5:
            members = complementary_halves(record_count(population), models=shadows, seed=seed)
        else:
            members = random_subsets(record_count(population), models=shadows, fraction=fraction, seed=seed)
        return cls(population=population, trainer=trainer, members=members, seed=seed)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Any]:
        """Train and give one model after another; none is kept here."""
        for index in range(len(self)):
            yield self.trainer(self.population, self.members[index], seed_for(self.seed, "shadow", index))
