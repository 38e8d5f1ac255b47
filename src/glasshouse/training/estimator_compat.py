"""What each library of estimators needs: names of its seeds, silence, and the labels that it takes.

Where it takes numbers alone, `Relabelled` gives a fitted estimator's columns the population's labels again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.optional import is_tensor
from glasshouse.core.randomness import seed_for

SEEDS = frozenset({"random_state", "random_seed", "seed"}) | {  # the last ones are LightGBM's
    f"{name}_seed" for name in ("bagging", "data_random", "drop", "extra", "feature_fraction", "objective")
}
_MULTICLASS = ("multi", "softmax", "ova", "ovr")  # beginnings of objectives for more than two classes
_WORTH_SHARING = 1_000_000  # values; below this, threads of a busy machine wait longer than they work


class Option(NamedTuple):
    """A parameter that is set where the user left it at its default."""

    names: tuple[str, ...]  # the first one is set if none of them was
    value: Any
    default: Any = None  # what an untouched parameter holds


@dataclass(frozen=True, kw_only=True)
class Habits:
    """How the estimators of one library are seeded, kept silent and given their labels.

    Labels are the user's own; or ``"dense"``, numbers 0, 1, … without a gap, so that a class without members has none;
    or ``"columns"`` of the population, for networks whose last layer has one output per class, and ``"float columns"``
    for those with one output.
    """

    options: tuple[Option, ...] = ()
    seed: str | None = None  # its name, if `get_params` shows it only after it was set
    labels: Literal["own", "dense", "columns", "float columns"] = "own"
    single: bool = False  # whether features must be float32
    class_count: str | None = None  # the parameter with the number of classes, if a multiclass objective needs it
    threads: str | None = None  # the parameter with the number of threads, if they wait for each other on small data


_PLAIN = Habits()
_SILENT = (Option(("verbose",), 0, 1),)  # else skorch writes a table with a row per epoch
_HABITS = {  # by the name under which a library is imported, or of one class in it
    "xgboost": Habits(labels="dense", class_count="num_class"),
    "lightgbm": Habits(
        options=(
            Option(("verbosity", "verbose"), -1),
            Option(("deterministic",), True),
            # else a race between two ways to add up decides, which round differently
            Option(("force_col_wise", "force_row_wise"), True),
        ),
        class_count="num_class",
        threads="n_jobs",
    ),
    "catboost": Habits(
        options=(
            Option(("verbose", "silent", "logging_level", "verbose_eval", "metric_period"), False),
            Option(("allow_writing_files",), False),  # it leaves a folder catboost_info otherwise
            Option(("thread_count",), 4),  # its sums depend on it, so the same on every machine
        ),
        seed="random_seed",
    ),
    "skorch": Habits(options=_SILENT, labels="columns", single=True),
    "skorch.NeuralNetBinaryClassifier": Habits(options=_SILENT, labels="float columns", single=True),
}


def habits_of(estimator: Any) -> Habits:
    """The habits of an estimator's library; a user's subclass has those of its base."""
    for base in type(estimator).__mro__:
        library = base.__module__.partition(".")[0]
        if found := _HABITS.get(f"{library}.{base.__name__}") or _HABITS.get(library):
            return found
    return _PLAIN


def parts_of(estimator: Any) -> Iterator[tuple[str, Any]]:
    """An estimator and every estimator inside it, each with the prefix of its parameters."""
    yield "", estimator
    for name, value in sorted(_parameters(estimator, deep=True).items()):
        if hasattr(value, "get_params") and not isinstance(value, type):
            yield f"{name}__", value


def prepare(estimator: Any, *, seed: int, classes: int, seen: int, values: int = 0) -> None:
    """Seed our own unfitted clone and everything inside it, keep it silent, and tell it how many classes there are.

    ``classes`` are those of the population, ``seen`` those of the members; ``values`` are the numbers to learn from.
    """
    for prefix, part in parts_of(estimator):
        habits, given = habits_of(part), _parameters(part, deep=False)
        # libraries outside scikit-learn read a seed as an int32
        bound = 2**32 if habits is _PLAIN else 2**31
        names = sorted(SEEDS & given.keys()) or ([habits.seed] if habits.seed else [])
        wanted = {name: seed_for(seed, f"{prefix}{name}") % bound for name in names}
        for option in habits.options if hasattr(part, "fit") else ():  # skorch's callbacks have no options
            if all(given.get(name, option.default) == option.default for name in option.names):
                wanted[option.names[0]] = option.value
        # with two classes these libraries take a model for a binary one, whatever its objective says
        multiclass = seen == 2 < classes and str(given.get("objective")).startswith(_MULTICLASS)
        if multiclass and habits.class_count and given.get(habits.class_count) is None:
            wanted[habits.class_count] = classes
        if habits.threads and given.get(habits.threads) is None and values < _WORTH_SHARING:
            wanted[habits.threads] = 1
        if wanted:
            part.set_params(**wanted)


def _parameters(estimator: Any, *, deep: bool) -> dict[str, Any]:
    """Its parameters by name; a user's own class may have none."""
    return dict(estimator.get_params(deep=deep)) if hasattr(estimator, "get_params") else {}


@dataclass(frozen=True, eq=False)
class Relabelled:
    """A fitted estimator with ``predict_proba`` that was given numbers in place of labels."""

    model: Any
    classes_: NDArray[Any]  # [C] the label of each of its columns
    single: bool = False  # whether it takes float32 features

    def predict_proba(self, x: Any) -> NDArray[Any]:
        """Probabilities [N, C], columns in the order of ``classes_``."""
        return np.asarray(self.model.predict_proba(single_precision(x) if self.single else x))

    def predict(self, x: Any) -> NDArray[Any]:
        """[N] the most likely labels."""
        found: NDArray[Any] = self.classes_[self.predict_proba(x).argmax(axis=1)]
        return found


def single_precision(x: Any) -> Any:
    """Features as networks take them: float64 arrays and tensors as float32, tables of numbers as arrays."""
    if hasattr(x, "iloc") and all(kind.kind in "fiub" for kind in x.dtypes):
        x = x.to_numpy()
    if is_tensor(x):
        return x.float() if str(x.dtype) == "torch.float64" else x
    return x.astype(np.float32) if getattr(x, "dtype", None) == np.float64 else x
