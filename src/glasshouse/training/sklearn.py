"""Train an estimator with scikit-learn's interface on the members of a population.

Every shadow model is an untrained copy of the estimator that learns from its own records alone. Estimators that predict
something else than the population holds are refused, and so are features that they do not take, with what to do. What
each library needs stands first: names of its seeds, silence, and the labels that it takes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, first_line
from glasshouse.core.optional import is_module, is_tensor
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, select
from glasshouse.training.trainer import Trainer, check_trainer, seeded

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
        return np.asarray(self.classes_[self.predict_proba(x).argmax(axis=1)])


def single_precision(x: Any) -> Any:
    """Features as networks take them: float64 arrays and tensors as float32, tables of numbers as arrays."""
    if hasattr(x, "iloc") and all(kind.kind in "fiub" for kind in x.dtypes):
        x = x.to_numpy()
    if is_tensor(x):
        return x.float() if str(x.dtype) == "torch.float64" else x
    return x.astype(np.float32) if getattr(x, "dtype", None) == np.float64 else x


def fresh(estimator: Any) -> Any:
    """The same estimator, unfitted.

    Like scikit-learn's ``clone``, but also for those whose constructor copies what it is given, as CatBoost's does.
    """
    try:
        return clone(estimator, safe=False)
    except RuntimeError:
        if isinstance(estimator, list | tuple):
            return type(estimator)(fresh(one) for one in estimator)
        return type(estimator)(**{name: fresh(value) for name, value in estimator.get_params(deep=False).items()})


def _check_fresh(estimator: Any) -> None:
    """Refuse an estimator that holds something trained that a copy would keep: it knows the target's members."""
    for _, part in parts_of(estimator):
        if type(part).__name__ == "FrozenEstimator" and hasattr(part, "predict"):
            raise InputError(
                f"estimator: holds a {type(part.estimator).__name__} that is already fitted (FrozenEstimator), and "
                f"every shadow model must be fitted to its own records. Give it unfitted."
            )
        module = getattr(part, "module", None)
        if is_module(module):
            name = type(module).__name__
            raise InputError(
                f"estimator: module: is a {name} that is already made. Give the class, or what makes a fresh one: "
                f"{type(part).__name__}({name}, …). Every shadow model starts untrained."
            )


_FUNCTION = "If it needs more than fit(x, y), pass a function (population, members, seed) -> model as trainer."


def _fitting_advice(x: Any, error: Exception) -> str:
    """A sentence for the refusal of an estimator: the first thing among the members' features that it may not take."""
    if isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 1:
        return "Records are texts: put a vectorizer before it, as in make_pipeline(TfidfVectorizer(), estimator)."
    if not hasattr(x, "iloc") or not hasattr(x, "dtypes"):
        if "NaN" in str(error):
            return "Fill empty cells in a pipeline: make_pipeline(SimpleImputer(), estimator)."
        return _FUNCTION
    encode = "encode it in a pipeline (sklearn.preprocessing.OneHotEncoder)"
    for name, kind in x.dtypes.astype(str).items():
        held, column = f"Column {str(name)!r}", f"frame[{name!r}]"
        if kind in ("object", "str", "string"):
            if "vocabulary" in str(error) and x.shape[1] == 1:
                return f"A vectorizer takes texts, not a table: give the column, Population({column}, labels)."
            return f"{held} holds text: {encode}, or make it of type category if the estimator takes that."
        if kind.startswith(("datetime", "timedelta", "period")):
            days = f"({column} - {column}.min()).dt.days"
            return f"{held} holds dates: make numbers of them, such as {days}."
        if kind == "category" and "NaN" not in str(error):
            return f"{held} is of type category: {encode}; for XGBoost say enable_categorical=True."
    empty = [name for name in x.columns if bool(x[name].isna().any())]
    if empty and ("NaN" in str(error) or "missing" in str(error)):
        return f"Column {str(empty[0])!r} has empty cells: fill them in a pipeline (sklearn.impute.SimpleImputer)."
    return _FUNCTION


def _kind(estimator: Any) -> str | None:
    """``"classifier"``, ``"regressor"``, … as scikit-learn calls it, or None for what does not say."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return getattr(estimator, "_estimator_type", None)
    try:
        kind: str | None = get_tags(estimator).estimator_type
    except (AttributeError, TypeError):  # a class that only looks like an estimator, such as a user's own wrapper
        return None
    return kind


def check_task(estimator: Any, population: Population, *, place: str = "estimator") -> None:
    """Refuse a classifier for a regression, and a regressor for classes; a loss of the user's own may ask either."""
    if population.own_loss:
        return
    name, kind = type(estimator).__name__, _kind(estimator)
    # skorch's regressor has a predict_proba too
    classifies = kind == "classifier" or (kind != "regressor" and hasattr(estimator, "predict_proba"))
    if population.regression and classifies:
        raise InputError(
            f"{place}: {name} is a classifier, but the population is a regression. Give a regressor, or leave out "
            f"regression=True."
        )
    if not population.regression and kind == "regressor":
        raise InputError(
            f"{place}: {name} is a regressor, but the labels are {len(population.classes)} classes. For real-valued "
            f"targets say Population(x, y, regression=True)."
        )


@dataclass(frozen=True, kw_only=True)
class SklearnTrainer:
    """Clones an estimator, seeds everything in it, keeps it silent, and fits it to the members.

    Classifiers of scikit-learn, XGBoost, LightGBM, CatBoost and skorch, and pipelines, searches and ensembles of them.
    Labels may be of any kind, and members may lack a class: a library that wants numbers gets numbers, and the model
    answers with the population's labels.

    Args:
        estimator: anything with ``fit`` and ``predict_proba``: a classifier or a pipeline that ends in one; or with
            ``decision_function``, whose margins are then used as logits. For a regression a regressor; if labels
            alone are asked for, ``predict`` is enough.
        weights: [N] how much each record of the population counts, for estimators whose ``fit`` takes sample weights.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> population = Population(np.arange(6.0).reshape(-1, 1), ["a", "a", "a", "b", "b", "b"])
        >>> trainer = SklearnTrainer(estimator=LogisticRegression())
        >>> trainer(population, np.array([1, 1, 0, 1, 1, 0], dtype=bool), seed=0).classes_
        array(['a', 'b'], dtype='<U1')
    """

    estimator: Any
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type):
            raise InputError(f"estimator: is the class {self.estimator.__name__}; give {self.estimator.__name__}(…).")
        answers = hasattr(self.estimator, "predict") or hasattr(self.estimator, "predict_proba")
        if not hasattr(self.estimator, "fit") or not (answers or _knows_later(self.estimator)):
            raise InputError(f"estimator: {type(self.estimator).__name__} has no fit and predict; give an estimator.")
        _check_fresh(self.estimator)
        if self.weights is not None and self.weighted_by is None:
            raise InputError(f"weights: {type(self.estimator).__name__}.fit takes no sample weights; leave them out.")

    @property
    def weighted_by(self) -> str | None:
        """The argument of ``fit`` that takes sample weights, of the last step of a pipeline; None if there is none."""
        path, last = _last_step(self.estimator)
        return f"{path}sample_weight" if has_fit_parameter(last, "sample_weight") else None

    def _fit_options(self, members: BoolArray) -> dict[str, Any]:
        if self.weights is None or self.weighted_by is None:
            return {}
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != members.shape or not (np.isfinite(weights) & (weights >= 0)).all():
            raise InputError(f"weights: shape {weights.shape}; give {len(members)} numbers from 0, one per record.")
        return {self.weighted_by: weights[members]}

    def check(self, population: Population, *, labels_only: bool = False) -> None:
        """Refuse an estimator that does not fit the population, before anything is trained.

        With ``labels_only`` models are only asked for labels, so that no probabilities are needed.
        """
        check_task(self.estimator, population)
        scores = hasattr(self.estimator, "predict_proba") or hasattr(self.estimator, "decision_function")
        enough = population.regression or population.own_loss or labels_only or scores
        if not enough and not _knows_later(self.estimator):
            name = type(self.estimator).__name__
            raise InputError(
                f"estimator: {name} has no predict_proba or decision_function, and an audit needs one. "
                f"Wrap it in sklearn.calibration.CalibratedClassifierCV, switch its option on, such as "
                f'voting="soft" or probability=True, or ask for labels alone, which shows less: '
                f"audit(…, attacker=Attacker(query=LabelOnly()))."
            )

    def __call__(self, population: Population, members: BoolArray, seed: int) -> Any:
        """A fitted clone that answers with the population's own labels, not with our column numbers."""
        self.check(population, labels_only=True)
        x, columns, weights = select(population.x, members), population.y[members], self._fit_options(members)
        own = population.own_loss
        seen, classes = (np.arange(2), 2) if own else (np.unique(columns), len(population.classes))
        if len(seen) < 2 and not population.regression:
            raise InputError("members: all members have the same label; a classifier needs two or more labels.")
        estimator = fresh(self.estimator)
        prepare(estimator, seed=seed, classes=classes, seen=len(seen), values=math.prod(getattr(x, "shape", ())))
        if own:
            return _fitted(estimator, x, columns, seed, weights)
        habits = [habits_of(part) for _, part in parts_of(estimator)]
        single = any(one.single for one in habits)
        x = single_precision(x) if single else x
        if population.regression:
            return _fitted(estimator, x, columns.astype(np.float32)[:, None] if single else columns, seed, weights)
        everyone = np.arange(classes)
        seen_first = np.concatenate([seen, np.setdiff1d(everyone, seen)])
        wanted = {one.labels for one in habits}
        # scikit-learn takes numbers such as 0.5 for a regression
        fractions = population.classes.dtype.kind == "f" and bool((population.classes % 1 != 0).any())
        labels, order = population.classes[columns], None
        if "float columns" in wanted:
            labels, order = columns.astype(np.float32), everyone
        elif "columns" in wanted:
            labels, order = columns, everyone
        elif "dense" in wanted or fractions:
            labels, order = np.searchsorted(seen, columns), seen_first
        elif len(seen) < classes and any(one.class_count for one in habits):
            order = seen_first  # a column for every class of the population may follow those with members
        model = _fitted(estimator, x, labels, seed, weights)
        if order is None:
            return model
        if not hasattr(model, "predict_proba"):
            raise InputError(
                f"estimator: {type(estimator).__name__} gives labels alone, and takes these labels only as numbers "
                f"0, 1, …; give whole numbers or text as labels."
            )
        width = Relabelled(model, population.classes, single).predict_proba(select(x, np.arange(1))).shape[1]
        return Relabelled(model, population.classes[order[:width]], single)


def _fitted(estimator: Any, x: Any, labels: NDArray[Any], seed: int, options: dict[str, Any]) -> Any:
    name, loaded = type(estimator).__name__, "torch" in sys.modules
    try:
        while True:
            with seeded(seed):
                estimator.fit(x, labels, **options)
            if loaded or "torch" not in sys.modules:
                return estimator
            estimator, loaded = fresh(estimator), True  # fit imported torch, whose stream did not follow the seed yet
    except Exception as error:
        raise InputError(
            f"estimator: {name} could not be fitted: {first_line(error).rstrip('.')}. {_fitting_advice(x, error)}"
        ) from error


def _knows_later(estimator: Any) -> bool:
    """Whether an estimator has probabilities once it is fitted: a stack without a final estimator gets a regression."""
    last = _last_step(estimator)[1]
    return getattr(last, "final_estimator", last) is None


def _last_step(estimator: Any) -> tuple[str, Any]:
    """What ends a pipeline, also one within another, with the prefix of its parameters; else the estimator itself."""
    path = ""
    while steps := getattr(estimator, "steps", None):
        path, estimator = f"{path}{steps[-1][0]}__", steps[-1][1]
    return path, estimator


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator was fitted."""
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


def as_trainer(trainer: Any, *, place: str = "trainer") -> Trainer:
    """A trainer as it is; an estimator becomes ``SklearnTrainer(estimator=…)``; anything else is refused."""
    if hasattr(trainer, "fit") and hasattr(trainer, "get_params"):
        return SklearnTrainer(estimator=trainer)
    check_trainer(trainer, place=place)
    return trainer  # type: ignore[no-any-return]
