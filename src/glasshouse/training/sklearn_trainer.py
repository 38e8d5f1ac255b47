"""Train an estimator with scikit-learn's interface on the members of a population."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, IntArray
from glasshouse.errors import InputError, first_line
from glasshouse.population import Population, select
from glasshouse.training.fitting_advice import fitting_advice
from glasshouse.training.fresh import check_fresh, fresh
from glasshouse.training.habits import habits_of, parts_of, prepare
from glasshouse.training.relabelled import Relabelled, single_precision
from glasshouse.training.seeding import seeded
from glasshouse.training.task import check_task

__all__ = ["SklearnTrainer"]


@dataclass(frozen=True, kw_only=True)
class SklearnTrainer:
    """Clones an estimator, seeds everything in it, keeps it silent, and fits it to the members.

    Classifiers of scikit-learn, XGBoost, LightGBM, CatBoost and skorch, and pipelines, searches and ensembles of them.
    Labels may be of any kind, and members may lack a class: a library that wants numbers gets numbers, and the model
    answers with the population's labels. What else each library needs is in `glasshouse.training.habits`.

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
        if not hasattr(self.estimator, "fit") or not (answers or _knows_later(self.estimator)):
            raise InputError(f"estimator: {type(self.estimator).__name__} has no fit and predict; give an estimator.")
        check_fresh(self.estimator)

    def check(self, population: Population, *, labels_only: bool = False) -> None:
        """Refuse an estimator that does not fit the population, before anything is trained.

        Args:
            population: what it will be trained on.
            labels_only: whether models are only asked for labels, so that no probabilities are needed.
        """
        check_task(self.estimator, population)
        enough = population.regression or labels_only or hasattr(self.estimator, "predict_proba")
        if not enough and not _knows_later(self.estimator):
            raise InputError(_no_probabilities(self.estimator))

    def __call__(self, population: Population, members: BoolArray, seed: int) -> Any:
        """A fitted clone that answers with the population's own labels, not with our column numbers."""
        self.check(population, labels_only=True)
        if population.regression:
            return self._regressor(population, members, seed)
        columns = population.y[members]
        seen, classes = np.unique(columns), len(population.classes)
        if len(seen) < 2:
            raise InputError("members: all members have the same label; a classifier needs two or more labels.")
        estimator = fresh(self.estimator)
        x = select(population.x, members)
        prepare(estimator, seed=seed, classes=classes, seen=len(seen), values=math.prod(getattr(x, "shape", ())))
        habits = [habits_of(part) for _, part in parts_of(estimator)]
        single = any(one.single for one in habits)
        wanted = {one.labels for one in habits}
        labels, order = population.classes[columns], None
        if "float columns" in wanted:
            labels, order = columns.astype(np.float32), np.arange(classes)
        elif "columns" in wanted:
            labels, order = columns, np.arange(classes)
        elif "dense" in wanted or _has_fractions(population.classes):
            labels, order = np.searchsorted(seen, columns), _order(seen, classes)
        elif len(seen) < classes and any(one.class_count for one in habits):
            order = _order(seen, classes)  # a column for every class of the population may follow those with members
        model = _fitted(estimator, single_precision(x) if single else x, labels, seed)
        if order is None:
            return model
        if not hasattr(model, "predict_proba"):
            raise InputError(
                f"estimator: {type(estimator).__name__} gives labels alone, and takes these labels only as numbers "
                f"0, 1, …; give whole numbers or text as labels."
            )
        width = Relabelled(model, population.classes, single).predict_proba(select(x, np.arange(1))).shape[1]
        return Relabelled(model, population.classes[order[:width]], single)

    def _regressor(self, population: Population, members: BoolArray, seed: int) -> Any:
        """A fitted clone that predicts the population's targets."""
        estimator = fresh(self.estimator)
        x = select(population.x, members)
        prepare(estimator, seed=seed, classes=0, seen=0, values=math.prod(getattr(x, "shape", ())))
        if any(habits_of(part).single for _, part in parts_of(estimator)):
            return _fitted(estimator, single_precision(x), population.y[members].astype(np.float32)[:, None], seed)
        return _fitted(estimator, x, population.y[members], seed)


def _fitted(estimator: Any, x: Any, labels: NDArray[Any], seed: int) -> Any:
    name = type(estimator).__name__
    try:
        with seeded(seed):
            estimator.fit(x, labels)
    except Exception as error:
        raise InputError(
            f"estimator: {name} could not be fitted: {first_line(error).rstrip('.')}. {fitting_advice(x, error)}"
        ) from error
    return estimator


def _knows_later(estimator: Any) -> bool:
    """Whether an estimator has probabilities once it is fitted: a stack without a final estimator gets a regression."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return getattr(estimator, "final_estimator", estimator) is None


def _no_probabilities(estimator: Any) -> str:
    return (
        f"estimator: {type(estimator).__name__} has no predict_proba, and an audit needs probabilities. Wrap it in "
        f'sklearn.calibration.CalibratedClassifierCV, switch its option on, such as voting="soft" or '
        f"probability=True, or ask for labels alone, which shows less: audit(…, query=LabelOnly())."
    )


def _order(seen: IntArray, classes: int) -> IntArray:
    """The population's column of each class number: first those with members, then the others."""
    return np.concatenate([seen, np.setdiff1d(np.arange(classes), seen)])


def _has_fractions(classes: NDArray[Any]) -> bool:
    """Whether labels are numbers such as 0.5, which scikit-learn takes for a regression."""
    return classes.dtype.kind == "f" and bool((classes % 1 != 0).any())
