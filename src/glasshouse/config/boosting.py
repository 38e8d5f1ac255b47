"""The ``trainer`` sections of gradient boosting libraries."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from sklearn.base import clone

from glasshouse.config.strict import Strict
from glasshouse.errors import InputError, needs_extra
from glasshouse.population import Population, select
from glasshouse.registry import did_you_mean
from glasshouse.training import SklearnTrainer, Trainer

__all__ = ["BoostingSection"]


@dataclass(frozen=True, kw_only=True)
class _Library:
    """A boosting library with an estimator like those of scikit-learn.

    Args:
        classifier: name of its class.
        usual: parameters in place of its own defaults. One thread, because sums over several threads are not always
            the same; nothing is printed, and no files are written.
        rounds: parameter that says how many trees there are, for a short trial.
    """

    classifier: str
    usual: dict[str, Any] = field(default_factory=dict)
    rounds: str = "n_estimators"


_LIBRARIES = {
    "xgboost": _Library(classifier="XGBClassifier", usual={"n_jobs": 1, "random_state": 0}),
    "lightgbm": _Library(
        classifier="LGBMClassifier",
        # without a fixed layout it measures which one is faster, and the trees depend on that
        usual={"n_jobs": 1, "random_state": 0, "verbosity": -1, "deterministic": True, "force_col_wise": True},
    ),
    "catboost": _Library(
        classifier="CatBoostClassifier",
        usual={"thread_count": 1, "random_state": 0, "verbose": False, "allow_writing_files": False},
        rounds="iterations",
    ),
}
_SAME = (  # names for one and the same parameter: ours is left out if the user gives another one
    {"n_jobs", "nthread", "num_threads", "thread_count"},
    {"random_state", "random_seed", "seed"},
    {"verbosity", "verbose", "silent", "logging_level", "verbose_eval"},
    {"force_col_wise", "force_row_wise"},
)


class BoostingSection(Strict):
    """Gradient boosting by a library of its own: XGBoost, LightGBM or CatBoost."""

    kind: Literal["xgboost", "lightgbm", "catboost"]
    parameters: dict[str, Any] = Field(default={})

    def build(self, population: Population, folder: Path) -> Trainer:
        """A trainer around a fresh classifier, tried on a few records before the long work."""
        library = _LIBRARIES[self.kind]
        with needs_extra(f"trainer: kind: {self.kind}", package=self.kind, extra="boosting"):
            module = importlib.import_module(self.kind)
        classifier = getattr(module, library.classifier)
        known = _known(classifier)
        if known and (unknown := sorted(self.parameters.keys() - known)):
            hint = did_you_mean(unknown[0], sorted(known))
            raise InputError(f"trainer.parameters: {unknown[0]!r} is not a parameter of {library.classifier}.{hint}")
        given = {name for same in _SAME if same & self.parameters.keys() for name in same}
        usual = {name: value for name, value in library.usual.items() if name not in given}
        try:
            estimator = classifier(**usual | self.parameters)
            _try_out(estimator, population, library)
        except InputError:
            raise
        except Exception as error:  # each library has errors of its own
            said = " ".join(str(error).split("Stack trace")[0].split())
            raise InputError(f"trainer.parameters: {library.classifier} refuses them: {said}.") from error
        return SklearnTrainer(estimator=estimator)


def _known(classifier: Any) -> set[str]:
    """The names of the parameters; empty if the library passes on any name and does not say which it knows."""
    names = set(classifier().get_params()) | set(inspect.signature(classifier.__init__).parameters)
    if classifier.__name__ != "LGBMClassifier":
        return set() if classifier.__name__ == "XGBClassifier" else names - {"self"}
    aliases = getattr(importlib.import_module("lightgbm.basic"), "_ConfigAliases", None)
    if aliases is None or not hasattr(aliases, "_get_all_param_aliases"):
        return set()
    listed = aliases._get_all_param_aliases()
    return names | set(listed) | {name for same in listed.values() for name in same}


def _try_out(estimator: Any, population: Population, library: _Library) -> None:
    """Train two rounds on a few records of each class, so that wrong values are found before the long work."""
    trial = clone(estimator)
    if isinstance(trial.get_params().get(library.rounds, 1), int | None):
        trial.set_params(**{library.rounds: 2})
    chosen = np.unique(np.concatenate([np.flatnonzero(population.y == one)[:8] for one in np.unique(population.y)]))
    labels = np.unique(population.y[chosen], return_inverse=True)[1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trial.fit(select(population.x, chosen), labels)
    for warning in caught:
        if unused := re.search(r'Parameters: \{ "?(\w+)', str(warning.message)):
            hint = did_you_mean(unused[1], sorted(estimator.get_params()))
            raise InputError(f"trainer.parameters: {unused[1]!r} is not a parameter of {library.classifier}.{hint}")
