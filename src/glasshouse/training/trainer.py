"""What a trainer is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from glasshouse.population import BoolArray

__all__ = ["Trainer"]


@runtime_checkable
class Trainer(Protocol):
    """Anything that trains one model on the members of a population; a plain function will do.

    The model it returns is a torch module giving logits, an estimator with ``predict_proba``, or a callable
    ``x -> logits``. The same seed must give the same model.

    Example:
        >>> def train(population, members, seed):
        ...     share = np.bincount(population.y[members], minlength=2) / members.sum()
        ...     return lambda x: np.tile(np.log(share), (len(x), 1))
        >>> import numpy as np
        >>> from glasshouse.population import Population
        >>> model = train(Population([[0.0], [1.0]], [0, 1]), np.array([True, True]), seed=0)
        >>> model(np.zeros((1, 1))).round(2)
        array([[-0.69, -0.69]])
    """

    def __call__(self, population: Any, members: BoolArray, /, seed: int) -> Any:
        """Train on ``members`` alone, [N] booleans over the population: a `Population`, or a graph."""
        ...
