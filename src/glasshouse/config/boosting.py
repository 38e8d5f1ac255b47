"""The ``trainer`` sections of gradient boosting libraries."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from glasshouse.config.any_trainer import EstimatorSection
from glasshouse.config.demands import THREADS, check_estimator
from glasshouse.errors import InputError, needs_extra
from glasshouse.population import Population, select
from glasshouse.registry import did_you_mean
from glasshouse.training import SklearnTrainer, Trainer

__all__ = ["BoostingSection"]


@dataclass(frozen=True, kw_only=True)
class _Library:
    """A boosting library with a classifier like those of scikit-learn.

    Args:
        classifier: name of its class.
        threads: its parameter for the number of threads; one by default, because small models wait more for each other
            than they gain, and sums over threads need not be the same on every machine.
        names: the names of all parameters of the class; None if the library passes on any name.
        outside: parameters that name files, folders or other machines.
    """

    classifier: str
    threads: str = "n_jobs"
    names: Callable[[Any], set[str]] | None = None
    outside: Callable[[], set[str]] = set


def _of_lightgbm(classifier: Any) -> set[str]:
    """Those of the class, and all that the library itself knows, with their other names."""
    aliases = importlib.import_module("lightgbm.basic")._ConfigAliases._get_all_param_aliases()
    return set(classifier().get_params()) | {name for same in aliases.values() for name in same}


def _lightgbm_outside() -> set[str]:
    names = (
        *("config", "data", "valid", "input_model", "output_model", "output_result", "convert_model", "save_binary"),
        *("snapshot_freq", "task", "forcedbins_filename", "forcedsplits_filename", "parser_config_file"),
        *("machine_list_filename", "machines", "num_machines", "local_listen_port"),
    )
    found: set[str] = importlib.import_module("lightgbm.basic")._ConfigAliases.get(*names)
    return found | set(names)


def _catboost_outside() -> set[str]:
    borders = {"input_borders", "output_borders"}
    return borders | {"train_dir", "snapshot_file", "save_snapshot", "snapshot_interval", "allow_writing_files"}


def _of_signature(classifier: Any) -> set[str]:
    return set(inspect.signature(classifier.__init__).parameters) - {"self"}


_ROUNDS = ("n_estimators", "iterations", "num_boost_round", "num_trees", "num_iterations")  # all say the same
_LIBRARIES = {
    "xgboost": _Library(classifier="XGBClassifier"),
    "lightgbm": _Library(classifier="LGBMClassifier", names=_of_lightgbm, outside=_lightgbm_outside),
    "catboost": _Library(
        classifier="CatBoostClassifier", threads="thread_count", names=_of_signature, outside=_catboost_outside
    ),
}


class BoostingSection(EstimatorSection):
    """Gradient boosting by a library of its own: XGBoost, LightGBM or CatBoost."""

    kind: Literal["xgboost", "lightgbm", "catboost"]

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer around a fresh classifier, tried on a few records before the long work."""
        library = _LIBRARIES[self.kind]
        with needs_extra(f"trainer: kind: {self.kind}", package=self.kind, extra="boosting"):
            classifier = getattr(importlib.import_module(self.kind), library.classifier)
        known = library.names(classifier) if library.names else set(self.parameters)
        if unknown := sorted(self.parameters.keys() - known):
            raise _unknown(unknown[0], library, known)
        if outside := sorted(self.parameters.keys() & library.outside()):
            raise InputError(
                f"trainer.parameters: {outside[0]}: names files or machines, which an audit file may not. Train in "
                f"Python if you need it."
            )
        check_estimator(self.parameters, population, rounds="max_iter")  # LightGBM has this name for it too
        try:
            one = {} if THREADS & self.parameters.keys() else {library.threads: 1}
            estimator = classifier(**one | self.parameters)
            unused = _unused(estimator, population)
        except Exception as error:  # each library has errors of its own
            said = " ".join(str(error).split("Stack trace")[0].split()).rstrip(".")
            raise InputError(f"trainer.parameters: {library.classifier} refuses them: {said}.") from error
        if unused:
            raise _unknown(unused, library, estimator.get_params().keys() - self.parameters.keys())
        return SklearnTrainer(estimator=estimator)


def _unknown(name: str, library: _Library, known: set[str]) -> InputError:
    hint = did_you_mean(name, sorted(known))
    return InputError(f"trainer.parameters: {name!r} is not a parameter of {library.classifier}.{hint}")


def _unused(estimator: Any, population: Population) -> str:
    """Train two rounds on a few records of each class, so that wrong values are found before the long work.

    Returns:
        A parameter that the library says it does not use; empty if there is none.
    """
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
