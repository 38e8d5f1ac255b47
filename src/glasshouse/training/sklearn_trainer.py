"""Train a scikit-learn estimator on the members of a population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.population import Population, select
from glasshouse.randomness import seed_for
from glasshouse.training.task import check_task

__all__ = ["SklearnTrainer"]


@dataclass(frozen=True, kw_only=True)
class SklearnTrainer:
    """Clones an estimator, seeds every ``random_state`` in it, and fits it to the members.

    Args:
        estimator: anything with ``fit`` and ``predict_proba``: a classifier or a pipeline that ends in one. For a
            regression a regressor; if labels alone are asked for, ``predict`` is enough.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> population = Population(np.arange(6.0).reshape(-1, 1), ["a", "a", "a", "b", "b", "b"])
        >>> trainer = SklearnTrainer(estimator=LogisticRegression())
        >>> trainer(population, np.array([1, 1, 0, 1, 1, 0], dtype=bool), seed=0).classes_
        array(['a', 'b'], dtype='<U1')
    """

    estimator: Any

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type):
            raise InputError(f"estimator: is the class {self.estimator.__name__}; give {self.estimator.__name__}(…).")
        answers = hasattr(self.estimator, "predict") or hasattr(self.estimator, "predict_proba")
        if not answers or not hasattr(self.estimator, "fit"):
            raise InputError(f"estimator: {type(self.estimator).__name__} has no fit and predict; give an estimator.")

    def check(self, population: Population, *, labels_only: bool = False) -> None:
        """Refuse an estimator that does not fit the population, before anything is trained.

        Args:
            population: what it will be trained on.
            labels_only: whether models are only asked for labels, so that no probabilities are needed.
        """
        check_task(self.estimator, population)
        if not (population.regression or labels_only or hasattr(self.estimator, "predict_proba")):
            name = type(self.estimator).__name__
            raise InputError(
                f"estimator: {name} has no predict_proba, and an audit needs probabilities. Wrap it in "
                f"sklearn.calibration.CalibratedClassifierCV, switch its probability option on, or ask for labels "
                f"alone, which shows less: audit(…, query=LabelOnly())."
            )

    def __call__(self, population: Population, members: BoolArray, seed: int) -> Any:
        """A fitted clone; it uses the population's own labels, not our column numbers."""
        self.check(population, labels_only=True)
        estimator = clone(self.estimator)
        seeds = {
            name: seed_for(seed, name) % 2**32
            for name in sorted(estimator.get_params(deep=True))
            if name == "random_state" or name.endswith("__random_state")
        }
        estimator.set_params(**seeds)
        labels = population.labels[members]
        if not population.regression and len(np.unique(labels)) < 2:
            raise InputError("members: all members have the same label; a classifier needs two or more labels.")
        return estimator.fit(select(population.x, members), labels)
