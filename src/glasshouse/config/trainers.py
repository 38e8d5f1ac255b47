"""The ``trainer`` section: how a model is trained."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from sklearn.utils import all_estimators

from glasshouse.config.any_trainer import AnyTrainer, EstimatorSection
from glasshouse.config.boosting import BoostingSection
from glasshouse.config.demands import MOST_EPOCHS, check_estimator, check_network
from glasshouse.config.imports import called
from glasshouse.errors import InputError, shortened
from glasshouse.population import Population
from glasshouse.registry import did_you_mean
from glasshouse.training import PrivateTrainer, SklearnTrainer, TorchTrainer, Trainer, WideResNet, mlp

__all__ = ["MLPSection", "PythonTrainer", "SklearnSection", "TrainerSection", "WideResNetSection"]

_LARGE = 1000.0  # a pixel is at most 255


class _TorchSection(AnyTrainer):
    """What all torch trainers have."""

    epochs: Annotated[int, Field(ge=1, le=MOST_EPOCHS)] = 100
    batch_size: Annotated[int, Field(ge=1)] = 64
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.0

    def optimizer(self) -> Any:
        return functools.partial(torch.optim.Adam, lr=self.learning_rate, weight_decay=self.weight_decay)


class MLPSection(_TorchSection):
    """A multi-layer perceptron; differentially private if ``epsilon`` is given."""

    kind: Literal["mlp"]
    hidden: list[Annotated[int, Field(ge=1)]] = Field(default=[512])
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    epsilon: Annotated[float, Field(gt=0)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5

    def advice(self, population: Population) -> tuple[str, ...]:
        """Features of very different size: a network learns little from the small ones, if it learns at all."""
        x = population.x
        largest = float(np.abs(x).max()) if isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "iuf" else 0.0
        if largest <= _LARGE:
            return ()
        return (
            f"Features are as large as {largest:.4g}, and a network learns best from numbers near 1. For a table, add "
            f"standardise: true to the section data.",
        )

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer for a population's shape."""
        width = math.prod(population.x.shape[1:])
        classes = 1 if population.regression else len(population.classes)
        check_network([width, *self.hidden, classes], place="trainer.hidden")
        module = mlp(width, classes, hidden=self.hidden, dropout=self.dropout)
        common: dict[str, Any] = {"module": module, "optimizer": self.optimizer()}
        common |= {"epochs": self.epochs, "batch_size": self.batch_size}
        if self.epsilon is not None:
            return PrivateTrainer(**common, epsilon=self.epsilon, delta=self.delta)
        return TorchTrainer(**common)


class WideResNetSection(_TorchSection):
    """A wide residual network on images [N, C, H, W]."""

    kind: Literal["wide-resnet"]
    depth: int = 28
    width: Annotated[int, Field(ge=1)] = 2

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer for a population's shape."""
        if population.regression:
            raise InputError("trainer: a wide-resnet gives classes, but the data is a regression; use kind: mlp.")
        if population.x.ndim != 4:
            raise InputError(f"trainer: a wide-resnet needs images [N, C, H, W], not {tuple(population.x.shape)}.")
        check_network([16 * self.width, 9 * 64 * self.width * max(1, self.depth)], place="trainer.width")
        module = functools.partial(
            WideResNet,
            classes=len(population.classes),
            depth=self.depth,
            width=self.width,
            channels=int(population.x.shape[1]),
        )
        return TorchTrainer(module=module, optimizer=self.optimizer(), epochs=self.epochs, batch_size=self.batch_size)


class SklearnSection(EstimatorSection):
    """Any scikit-learn classifier, by its class name; a regressor if the data is a regression."""

    kind: Literal["sklearn"]
    estimator: str

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer around a fresh estimator."""
        kind = "regressor" if population.regression else "classifier"
        known = dict(all_estimators(type_filter=kind))
        if self.estimator not in known:
            hint = did_you_mean(self.estimator, known)
            raise InputError(f"trainer.estimator: scikit-learn has no {kind} {shortened(self.estimator)}.{hint}")
        rounds = "max_iter" if self.estimator.startswith("HistGradientBoosting") else "n_estimators"
        check_estimator(self.parameters, population, rounds=rounds)
        try:
            estimator = known[self.estimator](**self.parameters)
            estimator._validate_params()  # scikit-learn itself looks at values only when it trains
        except Exception as error:  # each estimator has errors of its own
            said = shortened(str(error), most=300, quoted=False).rstrip(".")
            raise InputError(f"trainer.parameters: {self.estimator} refuses them: {said}.") from error
        trainer = SklearnTrainer(estimator=estimator)
        trainer.check(population)
        return trainer


class PythonTrainer(AnyTrainer):
    """The user's own trainer: ``module:function``, where the function gives a trainer."""

    kind: Literal["python"]
    factory: str

    def build(self, population: Population, folder: Path) -> Trainer:
        """Whatever the function gives, checked to be callable."""
        made = called(self.factory, folder, "trainer.factory")
        if not isinstance(made, Trainer):
            raise InputError(f"trainer.factory: {self.factory} gave {type(made).__name__}; expected a trainer.")
        return made


TrainerSection = Annotated[
    MLPSection | WideResNetSection | SklearnSection | BoostingSection | PythonTrainer, Field(discriminator="kind")
]
