"""A loaded estimator, checked before it is asked: compiled code of scikit-learn believes the arrays that it is given.

`compiled` checks trees before they are made, since making one already follows its numbers. What is here is harmless
until the first question: support vectors of libsvm, trees of nearest neighbours, and the stages of gradient boosting.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glasshouse.errors import InputError

__all__ = ["check_loaded"]

_NODE = ("idx_start", "idx_end", "is_leaf", "radius")


def check_loaded(model: Any) -> None:
    """Refuse an estimator with arrays that do not fit each other, anywhere in it.

    Args:
        model: as skops made it, from a file whose names and trees were checked.

    Example:
        >>> from sklearn.svm import SVC
        >>> fitted = SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> check_loaded(fitted)
        >>> fitted._n_support = np.array([1000, 1000], dtype=np.int32)
        >>> check_loaded(fitted)
        Traceback (most recent call last):
        glasshouse.errors.InputError: the estimator: the arrays of SVC do not fit each other: the file was changed.
    """
    for part in _parts(model):
        for base in type(part).__mro__:
            fitted, check = _CHECKS.get(base.__name__, ("", bool))
            if not fitted or not base.__module__.startswith("sklearn.") or not hasattr(part, fitted):
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about names of features, which a question of ours does not have
                    fits = check(part)
            except Exception:  # an attribute that is missing or of another type does not fit either
                fits = False
            if not fits:
                raise InputError(
                    f"the estimator: the arrays of {type(part).__name__} do not fit each other: the file was changed."
                )


def _parts(model: Any) -> Iterator[Any]:
    """Everything that an object holds, each once."""
    seen: dict[int, Any] = {}
    left = [model]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, str | bytes | int | float):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list | tuple | set) or (isinstance(one, np.ndarray) and one.dtype == object):
            left += list(np.ravel(one)) if isinstance(one, np.ndarray) else list(one)
        else:
            left += vars(one).values() if hasattr(one, "__dict__") else ()


def _support_vectors(svm: Any) -> bool:
    """What libsvm reads: for n classes and m vectors, (n - 1) m coefficients and a number for each pair of classes."""
    counts, support = svm._n_support, svm.support_
    classes, vectors = len(counts), len(support)
    pairs = classes * (classes - 1) // 2
    rows, width = svm.shape_fit_
    sparse = svm._sparse
    held, factors = svm.support_vectors_, svm._dual_coef_
    if sparse:
        for one in (held, factors):
            one.check_format(full_check=True)
        factors = factors.data.reshape(classes - 1, -1)
        held.data.reshape(-1)
    return bool(
        counts.ndim == support.ndim == 1
        and classes >= 2
        and (classes == len(svm.classes_) if svm._impl in ("c_svc", "nu_svc") else classes == 2)
        and (counts >= 0).all()
        and (counts.sum() == vectors or svm._impl not in ("c_svc", "nu_svc"))
        and ((support >= 0) & (support < rows)).all()
        and factors.shape == (classes - 1, vectors)
        and svm._intercept_.shape == (pairs,)
        and all(one.shape in ((0,), (pairs,)) for one in (svm._probA, svm._probB))
        and len(svm._probA) == len(svm._probB)
        and (svm.kernel == "precomputed" or held.shape == (vectors, width))
        and svm.n_features_in_ == width
    )


def _ball_or_box(tree: Any) -> bool:
    """A tree of nearest neighbours: nodes name ranges of records by number, and each inner node has two children."""
    data, order, nodes, bounds, _, levels, count, *_, metric, weights = tree.__getstate__()
    records, width = data.shape
    number = np.arange(count)
    return bool(
        records >= 1
        and width >= 1
        and order.shape == (records,)
        and ((order >= 0) & (order < records)).all()
        and nodes.dtype.names == _NODE
        and nodes.shape == (count,)
        and 1 <= levels <= 60
        and count == 2**levels - 1
        and ((nodes["idx_start"] >= 0) & (nodes["idx_start"] <= nodes["idx_end"])).all()
        and (nodes["idx_end"] <= records).all()
        and (nodes["is_leaf"][2 * number + 2 >= count] != 0).all()
        and bounds.shape == (1 if "Ball" in type(tree).__name__ else 2, count, width)
        and (weights is None or weights.shape == (records,))
        and _distance(metric, width)
    )


def _distance(metric: Any, width: int) -> bool:
    """Whether a distance has a weight for each feature, if it uses them."""
    name = type(metric).__name__
    _, weights, matrix = metric.__getstate__()[:3]
    if name.startswith("Mahalanobis"):
        return bool(matrix.shape == (width, width))
    if name.startswith("SEuclidean"):
        return bool(weights.shape == (width,))
    if name.startswith("Minkowski"):
        return len(weights) in (0, width)
    return width == 2 if name.startswith("Haversine") else True


def _neighbours(model: Any) -> bool:
    """As many records in the tree as in the training set, and as labels, which are looked up by number."""
    labels = getattr(model, "_y", None)
    trained = model._fit_X.shape[0]
    tree = getattr(model, "_tree", None)
    return (labels is None or len(labels) == trained) and (tree is None or tree.__getstate__()[0].shape[0] == trained)


def _stages(model: Any) -> bool:
    """Gradient boosting adds tree k of every stage to column k of what its first estimator says."""
    stages = model.estimators_
    first = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))
    return bool(stages.ndim == 2 and first.shape == (1, stages.shape[1]))


def _categories(model: Any) -> bool:
    """Histogram boosting: only a feature with categories may be asked for one."""
    known = model._bin_mapper.is_categorical_
    return known.ndim == 1 and all(
        (part["feature_idx"] < len(known)).all() and known[part["feature_idx"]].all()
        for stage in model._predictors
        for tree in stage
        for part in [tree.nodes[(tree.nodes["is_leaf"] == 0) & (tree.nodes["is_categorical"] != 0)]]
    )


# by the base class that has the arrays: the attribute that it has once it is fitted, and the check
_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "BaseLibSVM": ("support_", _support_vectors),
    "BinaryTree32": ("__getstate__", _ball_or_box),
    "BinaryTree64": ("__getstate__", _ball_or_box),
    "NeighborsBase": ("_fit_X", _neighbours),
    "BaseGradientBoosting": ("estimators_", _stages),
    "BaseHistGradientBoosting": ("_predictors", _categories),
}
