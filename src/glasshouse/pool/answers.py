"""What is kept of a model that cannot be stored: its answers about the population, which are all an audit needs."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.arrays import FloatArray

__all__ = ["KeptAnswers"]


@dataclass(frozen=True, eq=False)
class KeptAnswers:
    """Replaces a model of which only the answers were kept.

    Args:
        population_logits: [N, C] float64, in the order of the population's records and classes; for a regression
            its predictions, [N, 1] or [N, 2].

    Example:
        >>> import numpy as np
        >>> from glasshouse.population import Population
        >>> from glasshouse.queries import query
        >>> population = Population(np.zeros((2, 1)), [0, 1])
        >>> query(KeptAnswers(np.array([[1.0, 0.0], [1.0, 0.0]])), population).correct
        array([ True, False])
    """

    population_logits: FloatArray
