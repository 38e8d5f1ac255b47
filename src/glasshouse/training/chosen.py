"""What a user gives as a trainer, as a trainer."""

from __future__ import annotations

from typing import Any

from glasshouse.training.sklearn_trainer import SklearnTrainer
from glasshouse.training.trainer import Trainer, check_trainer

__all__ = ["as_trainer"]


def as_trainer(trainer: Any, *, place: str = "trainer") -> Trainer:
    """A trainer as it is; an estimator becomes ``SklearnTrainer(estimator=…)``; anything else is refused.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> as_trainer(LogisticRegression())
        SklearnTrainer(estimator=LogisticRegression())
    """
    if hasattr(trainer, "fit") and hasattr(trainer, "get_params"):
        return SklearnTrainer(estimator=trainer)
    check_trainer(trainer, place=place)
    return trainer  # type: ignore[no-any-return]
