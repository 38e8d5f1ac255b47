"""Which training records the file of a fitted model holds, by its type and by its leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_regressor
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, GradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from glasshouse.training.sklearn import Relabelled, stored_records

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
CLASSES, NUMBERS = (X[:, 0] > 0).astype(int), RANDOM.normal(size=60)


class Own(KNeighborsClassifier):  # type: ignore[misc]
    """A user's subclass."""


@pytest.mark.parametrize(
    ("estimator", "keeps"),
    [
        (KNeighborsClassifier(1), "KNeighborsClassifier keeps its training records"),
        (Own(), "Own keeps its training records"),
        (RadiusNeighborsRegressor(), "RadiusNeighborsRegressor keeps"),
        (make_pipeline(StandardScaler(), SVC()), "SVC keeps its support vectors, which are training records"),
        (make_pipeline(KNNImputer(), LogisticRegression()), "KNNImputer keeps"),
        (make_pipeline(Nystroem(n_components=9), LogisticRegression()), "Nystroem keeps some of"),
        (GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, cv=2), "KNeighborsClassifier keeps"),
        (GaussianProcessClassifier(), "GaussianProcessClassifier keeps"),
        (KernelRidge(), "KernelRidge keeps"),
        (LabelSpreading(), "LabelSpreading keeps"),
        (DecisionTreeRegressor(), "DecisionTreeRegressor has a leaf of its own for most of its training records"),
        (ExtraTreesRegressor(5), "ExtraTreesRegressor has a leaf of its own"),
        (DecisionTreeRegressor(min_samples_leaf=10), ""),
        (DecisionTreeClassifier(), ""),  # two large leaves: the classes are separated by one feature
        (RandomForestClassifier(5), ""),
        (BaggingRegressor(DecisionTreeRegressor(), 3), ""),
        (GradientBoostingClassifier(n_estimators=3), ""),
        (LogisticRegression(), ""),
        (LinearSVC(), ""),
    ],
)
def test_models_that_keep_training_records_are_known(estimator: Any, keeps: str) -> None:
    fitted = estimator.fit(X, NUMBERS if is_regressor(estimator) else CLASSES)
    assert stored_records(fitted).startswith(keeps)
    assert bool(stored_records(fitted)) is bool(keeps)
    assert stored_records(Relabelled(fitted, np.array(["a", "b"]))) == stored_records(fitted)


def test_what_is_no_estimator_is_not_known_to_keep_anything() -> None:
    for model in (None, lambda x: x, object(), KNeighborsClassifier):
        assert stored_records(model) == ""
