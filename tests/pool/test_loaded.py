"""Estimators whose arrays do not fit each other are refused before compiled code reads beyond them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, NuSVR

from glasshouse import InputError
from glasshouse.pool.storing import _from_skops

X = np.random.default_rng(0).random((60, 4))
Y = np.arange(60) % 3
NODES = 2  # where a tree of neighbours keeps its nodes


def svm(**changed: Any) -> SVC:
    fitted = SVC().fit(X, Y)
    for name, value in changed.items():
        setattr(fitted, name, value)
    return fitted


def neighbours(place: int, change: Callable[[Any], Any], *, kind: str = "kd_tree", **options: Any) -> Any:
    fitted = KNeighborsClassifier(algorithm=kind, leaf_size=5, **options).fit(X, Y)
    state = list(fitted._tree.__getstate__())
    state[place] = change(state[place])
    fitted._tree.__setstate__(tuple(state))
    return fitted


def with_field(name: str, value: int) -> Callable[[Any], Any]:
    def change(nodes: Any) -> Any:
        changed = nodes.copy()
        changed[name][:] = value
        return changed

    return change


def stages(columns: int) -> Any:
    fitted = GradientBoostingClassifier(n_estimators=2, max_depth=1).fit(X, Y)
    fitted.estimators_ = np.tile(fitted.estimators_, (1, columns))
    return fitted


def categories() -> Any:
    fitted = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=5).fit(X, Y)
    fitted._bin_mapper.is_categorical_ = np.zeros(4, dtype=np.uint8)
    for tree in fitted._predictors[0]:
        tree.nodes["is_categorical"] = 1
        tree.raw_left_cat_bitsets = tree.binned_left_cat_bitsets = np.zeros((9, 8), dtype=np.uint32)
    return fitted


def weighted(values: Any) -> Any:
    options = {"metric": "seuclidean", "metric_params": {"V": np.ones(4)}}
    fitted = KNeighborsClassifier(algorithm="ball_tree", **options).fit(X, Y)
    metric = fitted._tree.__getstate__()[11]
    metric.__setstate__((2.0, values, np.zeros((1, 1))))
    return fitted


HARMED: dict[str, Callable[[], Any]] = {
    "more support vectors than there are": lambda: svm(_n_support=np.full(3, 10**8, dtype=np.int32)),
    "vectors that are narrower": lambda: svm(support_vectors_=np.zeros((60, 1))),
    "fewer vectors": lambda: svm(support_vectors_=np.zeros((1, 4))),
    "fewer coefficients": lambda: svm(_dual_coef_=np.zeros((1, 1))),
    "fewer intercepts": lambda: svm(_intercept_=np.zeros(1)),
    "fewer classes": lambda: svm(classes_=np.arange(2)),
    "one number of Platt": lambda: svm(_probA=np.zeros(1), _probB=np.zeros(1)),
    "a wider training set": lambda: svm(shape_fit_=(60, 9)),
    "vectors beyond the training set": lambda: svm(support_=np.full(60, 10**6, dtype=np.int32)),
    "support vectors of bagging": lambda: BaggingClassifier(SVC(), n_estimators=1).fit(X, Y),
    "records beyond the last": lambda: neighbours(1, lambda order: order + 10**6),
    "fewer records in order": lambda: neighbours(1, lambda order: order[:3]),
    "nodes that start before": lambda: neighbours(NODES, with_field("idx_start", -5)),
    "nodes that end behind": lambda: neighbours(NODES, with_field("idx_end", 10**6)),
    "no leaf": lambda: neighbours(NODES, with_field("is_leaf", 0)),
    "fewer bounds": lambda: neighbours(3, lambda bounds: bounds[:, :1].copy()),
    "more nodes": lambda: neighbours(6, lambda count: 10**6),
    "more levels": lambda: neighbours(5, lambda levels: 40),
    "balls: fewer bounds": lambda: neighbours(3, lambda bounds: bounds[:, :1].copy(), kind="ball_tree"),
    "a tree of fewer records": lambda: neighbours(0, lambda data: data[:7]),
    "weights of one feature": lambda: weighted(np.ones(1)),
    "more trees in a stage than classes": lambda: stages(5),
    "categories of a number": categories,
}


@pytest.mark.parametrize("name", HARMED)
def test_arrays_that_do_not_fit_are_refused_before_the_first_question(name: str) -> None:
    model = HARMED[name]()
    if isinstance(model, BaggingClassifier):
        model.estimators_[0]._n_support[:] = 10**8
    with pytest.raises(InputError, match="do not fit each other: the file was changed. Delete this model's files"):
        _from_skops(skops.io.dumps(model))


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SVC(kernel="precomputed"),
        NuSVR(),
        BaggingClassifier(SVC(), n_estimators=2),
        CalibratedClassifierCV(SVC(), cv=2),
        KNeighborsClassifier(algorithm="kd_tree"),
        KNeighborsClassifier(algorithm="ball_tree", metric="mahalanobis", metric_params={"VI": np.eye(4)}),
        GradientBoostingClassifier(n_estimators=2, init="zero"),
        HistGradientBoostingClassifier(max_iter=2),
    ],
    ids=repr,
)
def test_whole_estimators_come_back_and_answer_alike(model: Any) -> None:
    x = X @ X.T if getattr(model, "kernel", "") == "precomputed" else np.floor(X * 7)
    fitted = model.fit(x, X[:, 0] if isinstance(model, NuSVR) else Y)
    np.testing.assert_array_equal(_from_skops(skops.io.dumps(fitted)).predict(x), fitted.predict(x))


def test_support_vectors_of_sparse_records_are_checked_too() -> None:
    fitted = SVC().fit(scipy.sparse.csr_matrix(X), Y)
    assert (_from_skops(skops.io.dumps(fitted)).predict(X) == fitted.predict(X)).all()
    fitted.support_vectors_.indices[:] = 10**6
    with pytest.raises(InputError, match="do not fit each other"):
        _from_skops(skops.io.dumps(fitted))
