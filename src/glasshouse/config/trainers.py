"""The ``trainer`` section: how a model is trained."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from sklearn.utils import all_estimators

from glasshouse.config.imports import imported
from glasshouse.config.strict import Strict
from glasshouse.errors import InputError
from glasshouse.population import Population
from glasshouse.training import PrivateTrainer, SklearnTrainer, TorchTrainer, Trainer, WideResNet, mlp

__all__ = ["MLPSection", "PythonTrainer", "SklearnSection", "TrainerSection", "WideResNetSection"]


class _TorchSection(Strict):
    """What all torch trainers have."""

    epochs: Annotated[int, Field(ge=1)] = 100
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

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer for a population's shape."""
        width = int(np.prod(population.x.shape[1:]))
        module = mlp(
            width, 1 if population.regression else len(population.classes), hidden=self.hidden, dropout=self.dropout
        )
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
        module = functools.partial(
            WideResNet,
            classes=len(population.classes),
            depth=self.depth,
            width=self.width,
            channels=int(population.x.shape[1]),
        )
        return TorchTrainer(module=module, optimizer=self.optimizer(), epochs=self.epochs, batch_size=self.batch_size)


class SklearnSection(Strict):
    """Any scikit-learn classifier, by its class name; a regressor if the data is a regression."""

    kind: Literal["sklearn"]
    estimator: str
    parameters: dict[str, Any] = Field(default={})

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer around a fresh estimator."""
        kind = "regressor" if population.regression else "classifier"
        known = dict(all_estimators(type_filter=kind))
        if self.estimator not in known:
            raise InputError(f"trainer.estimator: scikit-learn has no {kind} {self.estimator!r}.")
        try:
            trainer = SklearnTrainer(estimator=known[self.estimator](**self.parameters))
        except TypeError as error:
            raise InputError(f"trainer.parameters: {self.estimator} refuses them: {error}.") from error
        trainer.check(population)
        return trainer


class PythonTrainer(Strict):
    """The user's own trainer: ``module:function``, where the function gives a trainer."""

    kind: Literal["python"]
    factory: str

    def build(self, population: Population, folder: Path) -> Trainer:
        """Whatever the function gives, checked to be callable."""
        made = imported(self.factory, folder, "trainer.factory")()
        if not isinstance(made, Trainer):
            raise InputError(f"trainer.factory: {self.factory} gave {type(made).__name__}; expected a trainer.")
        return made


TrainerSection = Annotated[MLPSection | WideResNetSection | SklearnSection | PythonTrainer, Field(discriminator="kind")]
