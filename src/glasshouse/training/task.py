"""What an estimator predicts, classes or real numbers, and whether that is what a population holds."""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags

from glasshouse.errors import InputError
from glasshouse.population import Population

__all__ = ["check_task", "estimator_kind"]


def estimator_kind(estimator: Any) -> str | None:
    """``"classifier"``, ``"regressor"``, … as scikit-learn calls it, or None for what does not say.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> from sklearn.pipeline import make_pipeline
        >>> estimator_kind(make_pipeline(Ridge())), estimator_kind(len)
        ('regressor', None)
    """
    if not hasattr(estimator, "__sklearn_tags__"):
        return getattr(estimator, "_estimator_type", None)
    try:
        kind: str | None = get_tags(estimator).estimator_type
    except (AttributeError, TypeError):  # a class that only looks like an estimator, such as a user's own wrapper
        return None
    return kind


def check_task(estimator: Any, population: Population, *, place: str = "estimator") -> None:
    """Refuse a classifier for a regression, and a regressor for classes.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> check_task(Ridge(), Population([[0.0], [1.0]], ["no", "yes"]))
        Traceback (most recent call last):
        glasshouse.errors.InputError: estimator: Ridge is a regressor, but the labels are 2 classes. For real-valued \
targets say Population(x, y, regression=True).
    """
    name, kind = type(estimator).__name__, estimator_kind(estimator)
    # skorch's regressor has a predict_proba too
    if population.regression and (
        kind == "classifier" or (kind != "regressor" and hasattr(estimator, "predict_proba"))
    ):
        raise InputError(
            f"{place}: {name} is a classifier, but the population is a regression. Give a regressor, or leave out "
            f"regression=True."
        )
    if not population.regression and kind == "regressor":
        raise InputError(
            f"{place}: {name} is a regressor, but the labels are {len(population.classes)} classes. For real-valued "
            f"targets say Population(x, y, regression=True)."
        )
