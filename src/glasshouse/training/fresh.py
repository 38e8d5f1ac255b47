"""An untrained copy of an estimator: every shadow model learns from its own records alone."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from torch import nn

from glasshouse.errors import InputError
from glasshouse.training.habits import parts_of

__all__ = ["check_fresh", "fresh"]


def fresh(estimator: Any) -> Any:
    """The same estimator, unfitted.

    Like scikit-learn's ``clone``, but also for those whose constructor copies what it is given, as CatBoost's does.

    Example:
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> hasattr(fresh(DecisionTreeClassifier().fit([[0], [1]], [0, 1])), "tree_")
        False
    """
    try:
        return clone(estimator, safe=False)
    except RuntimeError:
        if isinstance(estimator, list | tuple):
            return type(estimator)(fresh(one) for one in estimator)
        return type(estimator)(**{name: fresh(value) for name, value in estimator.get_params(deep=False).items()})


def check_fresh(estimator: Any) -> None:
    """Refuse an estimator that holds something trained that a copy would keep: it knows the target's members.

    Example:
        >>> from sklearn.frozen import FrozenEstimator
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> check_fresh(FrozenEstimator(DecisionTreeClassifier().fit([[0], [1]], [0, 1])))
        Traceback (most recent call last):
        glasshouse.errors.InputError: estimator: holds a DecisionTreeClassifier that is already fitted ...
    """
    for _, part in parts_of(estimator):
        if type(part).__name__ == "FrozenEstimator" and hasattr(part, "predict"):
            raise InputError(
                f"estimator: holds a {type(part.estimator).__name__} that is already fitted (FrozenEstimator), and "
                f"every shadow model must be fitted to its own records. Give it unfitted."
            )
        module = getattr(part, "module", None)
        if isinstance(module, nn.Module):
            name = type(module).__name__
            raise InputError(
                f"estimator: module: is a {name} that is already made. Give the class, or what makes a fresh one: "
                f"{type(part).__name__}({name}, …). Every shadow model starts untrained."
            )
