"""The work of a worker: train a group of models and return them as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from glasshouse.arrays import BoolArray
from glasshouse.errors import naming
from glasshouse.label_only import predicted_labels
from glasshouse.pool.storing import StoredModel, stored
from glasshouse.population import AnyPopulation
from glasshouse.predictions import predict
from glasshouse.queries import Answers, query

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


def train_and_store(population: AnyPopulation, trainer: Any, group: Group) -> list[StoredModel]:
    """The models of a group as bytes, with the figures of their training."""
    models = train_group(population, trainer, group)
    found = []
    for index, model, who in zip(group.indices, models, group.members, strict=True):
        with naming(f"shadow model {index}"):
            found.append(stored(model, trainer, population, _metrics(model, trainer, population, who)))
    return found


def _metrics(model: Any, trainer: Any, population: AnyPopulation, members: BoolArray) -> dict[str, float]:
    """How well a model does on members and others; a trainer may have its own figures."""
    if hasattr(trainer, "metrics"):
        return dict(trainer.metrics(population.training_data, members, model))
    if not population.independent:
        return {}
    if getattr(population.training_data, "regression", False):
        return predict(model, population.training_data).figures(members)
    data = population.training_data
    if hasattr(model, "predict") and not hasattr(model, "predict_proba") and not callable(model):
        right = predicted_labels(model, data)(data.x) == data.y  # it gives labels and nothing else
        figures = Answers(np.empty(0), right, None).figures(members)
    else:
        answers = query(model, data)
        figures = answers.figures(members) | {"train_loss": float(answers.loss[members].mean())}
    return {name: value for name, value in figures.items() if np.isfinite(value)}


def groups_of(members: BoolArray, seeds: Sequence[int], size: int) -> list[Group]:
    """Consecutive models, ``size`` at a time."""
    parts = [slice(start, min(start + size, len(members))) for start in range(0, len(members), size)]
    return [Group(tuple(range(part.start, part.stop)), members[part], tuple(seeds[part])) for part in parts]
