"""The work of a worker: train a group of models and return them as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from glasshouse.arrays import BoolArray
from glasshouse.errors import naming
from glasshouse.pool.model_files import StoredModel, stored
from glasshouse.population import AnyPopulation
from glasshouse.queries import QueryOptions

__all__ = ["Group", "groups_of", "train_and_store", "train_group"]


class Group(NamedTuple):
    """Models that are trained together: always the same ones, so that a resumed run gives the same bytes."""

    indices: tuple[int, ...]
    members: BoolArray  # [models, N]
    seeds: tuple[int, ...]


def train_group(population: AnyPopulation, trainer: Any, group: Group) -> list[Any]:
    """The models of a group, trained in one batch if the trainer can."""
    data = population.training_data
    if len(group.indices) > 1 and hasattr(trainer, "train_many"):
        return list(trainer.train_many(data, group.members, group.seeds))
    return [trainer(data, who, seed) for who, seed in zip(group.members, group.seeds, strict=True)]


def train_and_store(population: AnyPopulation, trainer: Any, how: QueryOptions, group: Group) -> list[StoredModel]:
    """The models of a group as bytes, with the figures of their training."""
    models = train_group(population, trainer, group)
    found = []
    for index, model, who in zip(group.indices, models, group.members, strict=True):
        with naming(f"shadow model {index}"):
            found.append(stored(model, trainer, population, members=who, how=how))
    return found


def groups_of(members: BoolArray, seeds: Sequence[int], size: int) -> list[Group]:
    """Consecutive models, ``size`` at a time."""
    parts = [slice(start, min(start + size, len(members))) for start in range(0, len(members), size)]
    return [Group(tuple(range(part.start, part.stop)), members[part], tuple(seeds[part])) for part in parts]
