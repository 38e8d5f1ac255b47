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
    """A parameter that is set where the user left it at its default.

    Args:
        names: of the parameter; the first one is set if none of them was.
        value: what it is set to.
        default: what an untouched parameter holds.
    """

    names: tuple[str, ...]
    value: Any
    default: Any = None


@dataclass(frozen=True, kw_only=True)
class Habits:
    """How the estimators of one library are seeded, kept silent and given their labels.

    Args:
        options: set where the user left them at their default.
        seed: the name of the seed, if `get_params` shows it only after it was set.
        labels: ``"own"``: the user's own. ``"dense"``: numbers 0, 1, … without a gap, so that a class without members
            has none. ``"columns"``: the population's columns, for networks whose last layer has one output per class;
            ``"float columns"`` for those with one output.
        single: whether features must be float32.
        class_count: the parameter that holds the number of classes, if a multiclass objective needs it.
        threads: the parameter that holds the number of threads, if they wait for each other on small data.
    """

    options: tuple[Option, ...] = ()
    seed: str | None = None
    labels: Literal["own", "dense", "columns", "float columns"] = "own"
    single: bool = False
    class_count: str | None = None
    threads: str | None = None


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
    """The habits of an estimator's library; a user's subclass has those of its base.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> habits_of(LogisticRegression()).labels
        'own'
    """
    for base in type(estimator).__mro__:
        library = base.__module__.partition(".")[0]
        if found := _HABITS.get(f"{library}.{base.__name__}") or _HABITS.get(library):
            return found
    return _PLAIN


def parts_of(estimator: Any) -> Iterator[tuple[str, Any]]:
    """An estimator and every estimator inside it, each with the prefix of its parameters.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> [prefix for prefix, part in parts_of(make_pipeline(LogisticRegression()))]
        ['', 'logisticregression__']
    """
    yield "", estimator
    for name, value in sorted(_parameters(estimator, deep=True).items()):
        if hasattr(value, "get_params") and not isinstance(value, type):
            yield f"{name}__", value


_ALL, _SUPPORT = "its training records", "its support vectors, which are training records"
_KEEPERS = {  # what estimators keep, by the name of their class or of a base of it; other libraries have the same names
    **dict.fromkeys(
        ("NeighborsBase", "KNeighborsClassifier", "KNeighborsRegressor", "KNNImputer", "KernelDensity"), _ALL
    ),
    **dict.fromkeys(("GaussianProcessClassifier", "GaussianProcessRegressor", "KernelRidge", "KernelPCA"), _ALL),
    **dict.fromkeys(("BaseLibSVM", "SVC", "NuSVC", "SVR", "NuSVR"), _SUPPORT),
    **dict.fromkeys(("AffinityPropagation", "KMedoids"), "its prototypes, which are training records"),
    "BaseLabelPropagation": _ALL,
    "Nystroem": "some of its training records",
}


def stored_records(model: Any) -> str:
    """Which training records the file of a fitted model holds, in words; empty if none is known to be in it.

    Trees count if each was grown on all records, and most of these are alone in their leaf.

    Example:
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> stored_records(KNeighborsClassifier(1))
        'KNeighborsClassifier keeps its training records'
    """
    model = model.model if isinstance(model, Relabelled) else model
    try:
        parts = [part for _, part in parts_of(getattr(model, "best_estimator_", model))]
    except Exception:  # of the user's own class, whose parameters cannot be read; nothing is known of it
        return ""
    for part in parts:
        name = type(part).__name__
        for base in type(part).__mro__:
            if kept := _KEEPERS.get(base.__name__):
                return f"{name} keeps {kept}"
        inside = getattr(part, "estimators_", [part])
        inside = inside.ravel() if isinstance(inside, np.ndarray) else inside
        trees = [one.tree_ for one in inside if hasattr(one, "tree_")]
        leaves = [tree.n_node_samples[tree.children_left < 0] for tree in trees]
        if leaves and not getattr(part, "bootstrap", False) and all(2 * (one == 1).sum() > one.sum() for one in leaves):
            return f"{name} has a leaf of its own for most of its training records"
    return ""


def prepare(estimator: Any, *, seed: int, classes: int, seen: int, values: int = 0) -> None:
    """Seed our own unfitted clone and everything inside it, keep it silent, and tell it how many classes there are.

    ``classes`` are those of the population, ``seen`` those of the members; ``values`` are the numbers to learn from.

    Example:
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> forest = RandomForestClassifier()
        >>> prepare(forest, seed=0, classes=2, seen=2)
        >>> forest.random_state == seed_for(0, "random_state") % 2**32
        True
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
    """A fitted estimator that was given numbers in place of labels.

    Args:
        model: fitted, with ``predict_proba``.
        classes_: [C] the label of each of its columns.
        single: whether it takes float32 features.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
        >>> Relabelled(model, np.array(["no", "yes"])).predict([[5.0]])
        array(['yes'], dtype='<U3')
    """

    model: Any
    classes_: NDArray[Any]
    single: bool = False

    def predict_proba(self, x: Any) -> NDArray[Any]:
        """Probabilities [N, C], columns in the order of ``classes_``."""
        return np.asarray(self.model.predict_proba(single_precision(x) if self.single else x))

    def predict(self, x: Any) -> NDArray[Any]:
        """[N] the most likely labels."""
        found: NDArray[Any] = self.classes_[self.predict_proba(x).argmax(axis=1)]
        return found


def single_precision(x: Any) -> Any:
    """Features as networks take them: float64 arrays and tensors as float32, tables of numbers as arrays.

    Example:
        >>> single_precision(np.zeros((2, 3))).dtype, single_precision(np.zeros((2, 3), dtype=int)).dtype
        (dtype('float32'), dtype('int64'))
    """
    if hasattr(x, "iloc") and all(kind.kind in "fiub" for kind in x.dtypes):
        x = x.to_numpy()
    if is_tensor(x):
        return x.float() if str(x.dtype) == "torch.float64" else x
    return x.astype(np.float32) if getattr(x, "dtype", None) == np.float64 else x
