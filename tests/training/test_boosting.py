"""XGBoost, LightGBM and CatBoost: labels of any kind, classes that members lack, seeds, silence and pools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from glasshouse import InputError, Population, SklearnTrainer
from glasshouse.core.randomness import seed_for
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import population_logits, query

xgboost = pytest.importorskip("xgboost", reason="the extra `boosting` is not installed")
lightgbm = pytest.importorskip("lightgbm", reason="the extra `boosting` is not installed")
catboost = pytest.importorskip("catboost", reason="the extra `boosting` is not installed")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 4))
COLUMNS = np.where(np.arange(120) < 100, (X[:, 0] > 0).astype(int) * 2, 1)  # 0 and 2, and few records of class 1
LACKING = (np.arange(120) % 2 == 0) & (COLUMNS != 1)
LABELS = {
    "numbers": np.array([0, 1, 2]),
    "text": np.array(["a", "b", "c"]),
    "objects": np.array(["a", "b", "c"], dtype=object),
    "negative": np.array([-7, -1, 30]),
    "fractions": np.array([0.25, 0.5, 1.75]),
}


def boosters(**options: Any) -> dict[str, Any]:
    return {
        "xgboost": xgboost.XGBClassifier(n_estimators=4, subsample=0.5, **options),
        "lightgbm": lightgbm.LGBMClassifier(
            n_estimators=4, subsample=0.5, subsample_freq=1, min_child_samples=5, **options
        ),
        "catboost": catboost.CatBoostClassifier(n_estimators=4, **options),
    }


def reference(name: str, seed: int) -> np.ndarray:
    """[N, 3] by the library itself, on labels 0 and 1 for the classes 0 and 2 that members have."""
    number = {word: seed_for(seed, word) % 2**31 for word in ("random_state", "random_seed")}
    model = boosters()[name]
    if name == "catboost":
        model.set_params(random_seed=number["random_seed"], verbose=False, allow_writing_files=False, thread_count=4)
    else:
        model.set_params(random_state=number["random_state"])
    if name == "lightgbm":
        model.set_params(deterministic=True, force_col_wise=True, verbosity=-1, n_jobs=2)
    found = np.zeros((120, 3))
    found[:, [0, 2]] = model.fit(X[LACKING], COLUMNS[LACKING] // 2).predict_proba(X)
    return found


@pytest.mark.parametrize("name", boosters())
@pytest.mark.parametrize("kind", LABELS)
def test_a_class_that_members_lack_and_labels_of_any_kind_change_no_probability(name: str, kind: str) -> None:
    population = Population(X, LABELS[kind][COLUMNS])
    model = SklearnTrainer(estimator=boosters()[name])(population, LACKING, seed=5)
    assert set(model.classes_) == set(LABELS[kind][[0, 2]])
    logits = population_logits(model, population)
    np.testing.assert_allclose(
        np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), reference(name, 5), atol=2e-7
    )
    assert query(model, population).correct[LACKING].mean() > 0.8
    assert not query(model, population).correct[COLUMNS == 1].any()


@pytest.mark.parametrize(
    "estimator",
    [
        xgboost.XGBClassifier(n_estimators=4, objective="multi:softprob"),
        xgboost.XGBClassifier(n_estimators=4, objective="multi:softprob", num_class=3),
        lightgbm.LGBMClassifier(n_estimators=4, objective="multiclass", min_child_samples=5),
        catboost.CatBoostClassifier(n_estimators=4, loss_function="MultiClass"),
    ],
    ids=["xgboost", "xgboost of three", "lightgbm", "catboost"],
)
def test_a_multiclass_objective_survives_two_classes(estimator: Any) -> None:
    """XGBoost and LightGBM have a column for the class without members then, after those with members."""
    population = Population(X, LABELS["text"][COLUMNS])
    model = SklearnTrainer(estimator=estimator)(population, LACKING, seed=0)
    answers = query(model, population)
    assert answers.correct[LACKING].mean() > 0.8
    assert (answers.loss[COLUMNS == 1] > 3).all()


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), xgboost.XGBClassifier(n_estimators=3)),
        GridSearchCV(xgboost.XGBClassifier(n_estimators=3), {"max_depth": [1, 2]}, cv=2),
        CalibratedClassifierCV(xgboost.XGBClassifier(n_estimators=3), cv=2),
        VotingClassifier([("a", xgboost.XGBClassifier(n_estimators=3)), ("b", LogisticRegression())], voting="soft"),
        StackingClassifier([("a", lightgbm.LGBMClassifier(n_estimators=3))], cv=2),
        BaggingClassifier(catboost.CatBoostClassifier(n_estimators=3), n_estimators=2),
        make_pipeline(StandardScaler(), catboost.CatBoostClassifier(n_estimators=3, cat_features=[])),
    ],
    ids=["pipeline", "search", "calibrated", "vote", "stack", "bag", "copied list"],
)
def test_boosting_inside_other_estimators_is_seeded_silent_and_understood(
    estimator: Any, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    population = Population(X, LABELS["text"][COLUMNS])
    first, again, other = (
        population_logits(SklearnTrainer(estimator=estimator)(population, LACKING, seed=seed), population)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape == other.shape == (120, 3)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", boosters())
def test_a_resumed_pool_has_the_same_bytes_and_other_seeds_other_models(name: str, tmp_path: Path) -> None:
    population = Population(X, LABELS["text"][COLUMNS])
    trainer = SklearnTrainer(estimator=boosters()[name])
    pool = ShadowPool.plan(population, trainer, shadows=4, folder=tmp_path / "pool")
    pool.train(progress=False)
    before = {path.name: path.read_bytes() for path in (tmp_path / "pool").iterdir()}
    for path in (tmp_path / "pool").glob("model-0000[12]*"):
        path.unlink()
    pool.train(progress=False)
    assert {path.name: path.read_bytes() for path in (tmp_path / "pool").iterdir()} == before
    plain = [query(model, population).loss for model in ShadowPool.plan(population, trainer, shadows=4)]
    np.testing.assert_array_equal([query(model, population).loss for model in pool], plain)
    one, two = (population_logits(trainer(population, LACKING, seed=seed), population) for seed in (0, 1))
    assert not np.array_equal(one, two)


def test_what_the_user_set_stays() -> None:
    population = Population(X, LABELS["text"][COLUMNS])
    estimators = {
        "thread_count": catboost.CatBoostClassifier(n_estimators=2, thread_count=1, silent=True),
        "n_jobs": lightgbm.LGBMClassifier(n_estimators=2, n_jobs=2, force_row_wise=True, verbose=-1),
    }
    for name, estimator in estimators.items():
        made = SklearnTrainer(estimator=estimator)(population, np.ones(120, dtype=bool), seed=0).get_params()
        assert made[name] == estimator.get_params()[name]
        assert not {"verbosity", "force_col_wise"} & made.keys()
        assert "verbose" not in made or name == "n_jobs"


def test_what_a_library_cannot_do_is_one_line() -> None:
    population = Population(X, COLUMNS)
    early = SklearnTrainer(estimator=xgboost.XGBClassifier(early_stopping_rounds=3))
    with pytest.raises(
        InputError, match=r"estimator: XGBClassifier could not be fitted: ValueError: Must have at least"
    ):
        early(population, LACKING, seed=0)
    with pytest.raises(InputError, match="model: CatBoostClassifier could not answer .* Fit it on the members"):
        query(catboost.CatBoostClassifier(), population)
