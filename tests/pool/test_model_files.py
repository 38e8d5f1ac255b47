from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from glasshouse import InputError, LabelOnly, Population, SklearnTrainer, TorchTrainer
from glasshouse.pool import ShadowPool
from glasshouse.pool.folder import restored, stored
from glasshouse.query.classify import query
from glasshouse.training import Versioned

POPULATION = Population(np.arange(8.0).reshape(4, 2).astype(np.float32), [0, 1, 0, 1])
EVERYONE = np.ones(4, dtype=bool)


def loss_of(model: Any, population: Population = POPULATION) -> Any:
    return query(model, population).loss


class OwnClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A type that is nobody's we know."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> OwnClassifier:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.full((len(x), 2), 0.5)


def test_of_an_estimator_the_answers_are_kept() -> None:
    model = OwnClassifier().fit(POPULATION.x, POPULATION.y)
    found = stored(model, SklearnTrainer(estimator=OwnClassifier()), POPULATION, members=EVERYONE)
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
    found = stored(model, trainer, POPULATION, members=EVERYONE)
    again = restored(found.kind, found.content, trainer, POPULATION)
    assert (query(again, POPULATION).loss == query(model, POPULATION).loss).all()


def test_a_trainer_that_restores_must_give_modules() -> None:
    class Odd:
        def restore(self, population: Any, tensors: Any) -> Any:
            return None

    with pytest.raises(InputError, match="made a LogisticRegression and not a torch module"):
        stored(LogisticRegression().fit(POPULATION.x, POPULATION.y), Odd(), POPULATION, members=EVERYONE)


RANDOM = np.random.default_rng(0)
MANY = Population(RANDOM.normal(size=(60, 3)), RANDOM.integers(2, size=60))


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5),
        KNeighborsClassifier(3, algorithm="ball_tree"),
        GradientBoostingClassifier(n_estimators=2, init=DecisionTreeClassifier(max_depth=1)),
        GaussianNB(),
        make_pipeline(FunctionTransformer(np.arctan), CalibratedClassifierCV(SVC(), cv=2)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_kept_answers_give_the_losses_of_the_model_to_the_last_bit(estimator: Any, tmp_path: Path) -> None:
    trainer = SklearnTrainer(estimator=estimator)
    fresh = [loss_of(model, MANY) for model in ShadowPool.plan(MANY, trainer, shadows=2)]
    kept = [loss_of(model, MANY) for model in ShadowPool.plan(MANY, trainer, shadows=2, folder=tmp_path)]
    np.testing.assert_array_equal(kept, fresh)


def signs(population: Population, members: Any, seed: int) -> Any:
    return lambda x: (x[:, 0] > 0).astype(int)


@pytest.mark.parametrize("trainer", [SklearnTrainer(estimator=LinearSVC()), signs], ids=["LinearSVC", "a function"])
def test_labels_alone_can_be_kept_and_are_as_those_of_fresh_models(trainer: Any, tmp_path: Path) -> None:
    how = LabelOnly(votes=4)
    fresh = [query(one, MANY, how=how) for one in ShadowPool.plan(MANY, trainer, shadows=2, how=how)]
    pool = ShadowPool.plan(MANY, trainer, shadows=2, how=how, folder=tmp_path)
    for _ in range(2):  # trained, then read
        for one, answers in zip(pool, fresh, strict=True):
            found = query(one, MANY, how=how)
            np.testing.assert_array_equal(found.loss, answers.loss)
            np.testing.assert_array_equal(found.correct, answers.correct)


def test_a_new_question_trains_again_says_so_and_keeps_both_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trained: list[int] = []

    def trainer(population: Population, members: Any, seed: int) -> Any:
        trained.append(seed)
        return LogisticRegression().fit(population.x[members], population.y[members])

    options: dict[str, Any] = {"shadows": 2, "folder": tmp_path}
    versioned = Versioned(trainer, version="1")
    first = ShadowPool.plan(MANY, versioned, **options)
    usual = [loss_of(model, MANY) for model in first]
    assert not caplog.records
    other = ShadowPool.plan(MANY, versioned, how=LabelOnly(votes=4), **options)
    other.train(progress=False)
    assert len(trained) == 4
    assert "answers to another question, not the models; they are trained again" in caplog.text
    ShadowPool.plan(MANY, versioned, how=LabelOnly(votes=4, batch_size=7), **options).train(progress=False)
    assert len(trained) == 4  # another batch size is the same question
    np.testing.assert_array_equal([loss_of(model, MANY) for model in first], usual)
    with pytest.raises(InputError, match="when labels alone were asked for, and now probabilities are"):
        query(next(iter(other)), MANY)
    with pytest.raises(InputError, match="when probabilities were asked for, and now labels alone are"):
        query(next(iter(first)), MANY, how=LabelOnly(votes=4))


def test_a_stored_estimator_of_an_earlier_version_is_never_opened(tmp_path: Path) -> None:
    trainer = SklearnTrainer(estimator=LogisticRegression())
    pool = ShadowPool.plan(MANY, trainer, shadows=2, folder=tmp_path)
    pool.train(progress=False)
    os.mkfifo(tmp_path / "model-00000.skops")  # who opens it waits for ever
    with pytest.raises(InputError, match=r"model-00000.skops: is an estimator.*no longer read.*delete"):
        pool.train(progress=False)
