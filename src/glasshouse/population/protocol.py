"""What a shadow pool needs from any data: a population of records, or the nodes of a graph."""

from __future__ import annotations

import functools
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import TextArray
from glasshouse.errors import InputError
from glasshouse.population.checking import advice_for

__all__ = ["AnyPopulation", "as_population"]


@runtime_checkable
class AnyPopulation(Protocol):
    """What a shadow pool needs from the data that models are trained on: a `Population`, or the nodes of a graph."""

    def __len__(self) -> int:
        """N, the number of records."""
        ...

    @property
    def ids(self) -> TextArray:
        """[N] stable names of the records."""
        ...

    @property
    def training_data(self) -> Any:
        """What a trainer is called with."""
        ...

    @property
    def independent(self) -> bool:
        """Whether a model's answer about a record depends on that record alone; answers can then replace a model."""
        ...

    def fingerprint(self) -> str:
        """A short hash of the data, by which a pool and a report identify it."""
        ...

    def digests(self) -> NDArray[np.bytes_]:
        """[N] a short hash of each record: equal records have equal hashes."""
        ...


@functools.singledispatch
def as_population(data: Any) -> AnyPopulation:
    """The data that a user trains models on, as a population; a package registers its own type of data here.

    Example:
        >>> from glasshouse import Population
        >>> population = Population([[0.0], [1.0]], [0, 1])
        >>> as_population(population) is population
        True
    """
    if isinstance(data, AnyPopulation):
        return data
    raise InputError(
        f"population: {type(data).__name__} is not a population; {advice_for(data)} For a graph, import "
        f"glasshouse.graph first."
    )
