"""Set public records aside: what attacks without shadow models learn from, with features of any kind as numbers."""

from __future__ import annotations

from glasshouse.arrays import BoolArray
from glasshouse.evaluation.drawn.features import few_columns
from glasshouse.evidence import Evidence, PublicRecords
from glasshouse.population import Population
from glasshouse.randomness import generator

__all__ = ["with_public_records"]


def with_public_records(evidence: Evidence, population: Population, public: BoolArray, *, seed: int) -> Evidence:
    """The evidence about the other records, with the public ones as material.

    Args:
        evidence: about all records of the population.
        population: for what is known about them without the target.
        public: [N] which are public.
        seed: of the projections of wide features.

    Example:
        >>> import numpy as np
        >>> population = Population(np.arange(6.0).reshape(6, 1), [0, 1, 0, 1, 0, 1])
        >>> evidence = Evidence(target_loss=np.ones(6), labels=population.y)
        >>> cut = with_public_records(evidence, population, np.arange(6) < 2, seed=0)
        >>> cut.records, len(cut.public)
        (4, 2)
    """
    columns = few_columns(population.features, generator(seed, "public features"))
    return evidence.of_records(~public).with_public(
        PublicRecords(
            loss=evidence.target_loss[public],
            labels=population.y[public],
            features=columns[public],
            audited=columns[~public],
        )
    )
