from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn

from glasshouse import InputError, Population, SklearnTrainer, TorchTrainer
from glasshouse.pool.storing import ending, restored, stored
from glasshouse.queries import query

POPULATION = Population(np.arange(8.0).reshape(4, 2).astype(np.float32), [0, 1, 0, 1])


class OwnClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A type that is nobody's we know."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> OwnClassifier:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.full((len(x), 2), 0.5)


def test_an_estimator_of_unknown_types_keeps_its_answers_instead() -> None:
    model = OwnClassifier().fit(POPULATION.x, POPULATION.y)
    found = stored(model, SklearnTrainer(estimator=OwnClassifier()), POPULATION, {})
    assert found.kind == "answers"
    assert query(restored(found.kind, found.content, None, POPULATION), POPULATION).loss == pytest.approx(np.log(2))


def test_weights_that_are_shared_are_stored_one_by_one() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.second = nn.Linear(2, 2)
            self.second.weight = self.first.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x))  # type: ignore[no-any-return]

    trainer = TorchTrainer(module=Tied, device="cpu")
    model = Tied()
    found = stored(model, trainer, POPULATION, {})
    again = restored(found.kind, found.content, trainer, POPULATION)
    assert (query(again, POPULATION).loss == query(model, POPULATION).loss).all()


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match='"pickle" is not a kind'):
        ending("pickle")
