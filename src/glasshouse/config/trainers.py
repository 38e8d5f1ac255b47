"""The ``trainer`` section: how a model is trained, by our networks, scikit-learn, a boosting library or the user."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import re
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import all_estimators

from glasshouse.config.trust import called
from glasshouse.config.yaml_model import MOST_EPOCHS, THREADS, Strict, check_estimator, check_network
from glasshouse.core.errors import InputError, needs_extra, shortened
from glasshouse.core.registry import did_you_mean
from glasshouse.data import Population, select
from glasshouse.training import SklearnTrainer, Trainer

_CLASSIFIERS = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier", "catboost": "CatBoostClassifier"}
_THREADS = {"catboost": "thread_count"}
_ROUNDS = ("n_estimators", "iterations", "num_boost_round", "num_trees", "num_iterations")  # all say the same
# parameters that name files, folders or other machines
_LIGHTGBM_OUTSIDE = {
    *("config", "data", "valid", "input_model", "output_model", "output_result", "convert_model", "save_binary"),
    *("snapshot_freq", "task", "forcedbins_filename", "forcedsplits_filename", "parser_config_file"),
    *("machine_list_filename", "machines", "num_machines", "local_listen_port"),
}
_CATBOOST_OUTSIDE = {
    *("input_borders", "output_borders", "train_dir", "snapshot_file", "save_snapshot", "snapshot_interval"),
    "allow_writing_files",
}
_LARGE = 1000.0  # a pixel is at most 255
# where most estimators of scikit-learn are; those that are used most come first
_ROOMS = ("ensemble", "linear_model", "tree", "naive_bayes", "neighbors", "svm", "neural_network", "gaussian_process")
_KINDS = {"classifier": ClassifierMixin, "regressor": RegressorMixin}


class AnyTrainer(Strict):
    """Base of the sections that build a trainer."""

    def advice(self, population: Population) -> tuple[str, ...]:
        """What does not suit this trainer about the records, a sentence each; by default nothing."""
        return ()


class EstimatorSection(AnyTrainer):
    """Base of the sections that pass parameters on to an estimator."""

    parameters: dict[str, Any] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _parameters_apart(cls, given: Any) -> Any:
        strange = [name for name in given if name not in cls.model_fields] if isinstance(given, dict) else []
        if strange:
            raise ValueError(
                f"{strange[0]!r} is not a key here; if the estimator takes it, write "
                f"parameters: {{{strange[0]}: {given[strange[0]]}}}."
            )
        return given


def _known_parameters(kind: str, classifier: Any) -> tuple[set[str] | None, set[str]]:
    """All parameters, None if the library passes on any name; and those of files and machines, which are refused."""
    if kind == "xgboost":
        return None, set()
    if kind == "catboost":
        return set(inspect.signature(classifier.__init__).parameters) - {"self"}, _CATBOOST_OUTSIDE
    aliases = importlib.import_module("lightgbm.basic")._ConfigAliases  # of every parameter, also its other names
    every = {name for same in aliases._get_all_param_aliases().values() for name in same}
    return set(classifier().get_params()) | every, _LIGHTGBM_OUTSIDE | aliases.get(*_LIGHTGBM_OUTSIDE)


class BoostingSection(EstimatorSection):
    """Gradient boosting by a library of its own: XGBoost, LightGBM or CatBoost."""

    kind: Literal["xgboost", "lightgbm", "catboost"]

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer around a fresh classifier, tried on a few records before the long work."""
        name = _CLASSIFIERS[self.kind]
        with needs_extra(f"trainer: kind: {self.kind}", package=self.kind, extra="boosting"):
            classifier = getattr(importlib.import_module(self.kind), name)
        known, outside = _known_parameters(self.kind, classifier)
        if known is not None and (unknown := sorted(self.parameters.keys() - known)):
            raise _unknown(unknown[0], name, known)
        if strange := sorted(self.parameters.keys() & outside):
            raise InputError(
                f"trainer.parameters: {strange[0]}: names files or machines, which an audit file may not. Train in "
                f"Python if you need it."
            )
        check_estimator(self.parameters, population, rounds="max_iter")  # LightGBM has this name for it too
        try:
            # one thread by default: small models wait more for each other than they gain from more, and sums over
            # threads need not be the same on every machine
            one = {} if THREADS & self.parameters.keys() else {_THREADS.get(self.kind, "n_jobs"): 1}
            estimator = classifier(**one | self.parameters)
            unused = _unused(estimator, population)
        except Exception as error:  # each library has errors of its own
            said = " ".join(str(error).split("Stack trace")[0].split()).rstrip(".")
            raise InputError(f"trainer.parameters: {name} refuses them: {said}.") from error
        if unused:
            raise _unknown(unused, name, estimator.get_params().keys() - self.parameters.keys())
        return SklearnTrainer(estimator=estimator)


def _unknown(name: str, classifier: str, known: set[str]) -> InputError:
    hint = did_you_mean(name, sorted(known))
    return InputError(f"trainer.parameters: {name!r} is not a parameter of {classifier}.{hint}")


def _unused(estimator: Any, population: Population) -> str:
    """Train two rounds on a few records of each class, to find wrong values; gives an unused parameter, or ""."""
    given = estimator.get_params()
    rounds = next((name for name in _ROUNDS if given.get(name) is not None), _ROUNDS[0])
    short = {rounds: 2} if isinstance(given.get(rounds), int | None) else {}
    trial = type(estimator)(**given | short)
    chosen = np.sort(np.concatenate([np.flatnonzero(population.y == one)[:8] for one in np.unique(population.y)]))
    few = Population(select(population.x, chosen), population.y[chosen])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SklearnTrainer(estimator=trial)(few, np.ones(len(few), dtype=np.bool_), 0)
    found = [re.search(r'Parameters: \{ "?(\w+)', str(warning.message)) for warning in caught]
    return next((match[1] for match in found if match), "")


class _TorchSection(AnyTrainer):
    """What all torch trainers have."""

    epochs: Annotated[int, Field(ge=1, le=MOST_EPOCHS)] = 100
    batch_size: Annotated[int, Field(ge=1)] = 64
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.0

    def trainer(self, module: Any, **privacy: float) -> Trainer:
        """A trainer of such modules, differentially private if it is said how much."""
        import torch

        from glasshouse.training import PrivateTrainer, TorchTrainer

        optimizer = functools.partial(torch.optim.Adam, lr=self.learning_rate, weight_decay=self.weight_decay)
        kind: Any = PrivateTrainer if privacy else TorchTrainer
        made: Trainer = kind(
            module=module, optimizer=optimizer, epochs=self.epochs, batch_size=self.batch_size, **privacy
        )
        return made


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
        with needs_extra("trainer: kind: mlp", package="torch", extra="torch"):
            from glasshouse.training import mlp
        module = mlp(width, classes, hidden=self.hidden, dropout=self.dropout)
        return self.trainer(module, **({} if self.epsilon is None else {"epsilon": self.epsilon, "delta": self.delta}))


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
        with needs_extra("trainer: kind: wide-resnet", package="torch", extra="torch"):
            from glasshouse.training import WideResNet
        module = functools.partial(
            WideResNet,
            classes=len(population.classes),
            depth=self.depth,
            width=self.width,
            channels=int(population.x.shape[1]),
        )
        return self.trainer(module)


class SklearnSection(EstimatorSection):
    """Any scikit-learn classifier, by its class name; a regressor if the data is a regression."""

    kind: Literal["sklearn"]
    estimator: str

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer around a fresh estimator."""
        estimator_class = _estimator(self.estimator, "regressor" if population.regression else "classifier")
        rounds = "max_iter" if self.estimator.startswith("HistGradientBoosting") else "n_estimators"
        check_estimator(self.parameters, population, rounds=rounds)
        try:
            estimator = estimator_class(**self.parameters)
            estimator._validate_params()  # scikit-learn itself looks at values only when it trains
        except Exception as error:  # each estimator has errors of its own
            said = shortened(str(error), most=300, quoted=False).rstrip(".")
            raise InputError(f"trainer.parameters: {self.estimator} refuses them: {said}.") from error
        trainer = SklearnTrainer(estimator=estimator)
        trainer.check(population)
        return trainer


def _estimator(name: str, kind: Literal["classifier", "regressor"]) -> Any:
    """A class of scikit-learn by its name, room by room: ``all_estimators`` imports all of it, and torch too."""
    for room in _ROOMS:
        module = importlib.import_module(f"sklearn.{room}")
        found = getattr(module, name) if name in module.__all__ else None
        if isinstance(found, type) and issubclass(found, _KINDS[kind]):
            return found
    known = dict(all_estimators(type_filter=kind))
    if name not in known:
        raise InputError(f"trainer.estimator: scikit-learn has no {kind} {shortened(name)}.{did_you_mean(name, known)}")
    return known[name]


class PythonTrainer(AnyTrainer):
    """The user's own trainer: ``module:function``, where the function gives a trainer."""

    kind: Literal["python"]
    factory: str

    def build(self, population: Population, folder: Path) -> Trainer:
        """Whatever the function gives, checked to be callable."""
        made: Trainer = called(self.factory, folder, "trainer.factory", kind=Trainer, expected="a trainer")
        return made


TrainerSection = Annotated[
    MLPSection | WideResNetSection | SklearnSection | BoostingSection | PythonTrainer, Field(discriminator="kind")
]
