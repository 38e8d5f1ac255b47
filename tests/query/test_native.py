"""Models as their libraries give them: the same losses as by the library's own call."""

from __future__ import annotations

import copy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catboost import CatBoost
from lightgbm import Dataset as LightSet
from lightgbm import train as light_train
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import SVC, LinearSVC
from torch import nn
from xgboost import DMatrix
from xgboost import train as boosted

from glasshouse import Attacker, InputError, LabelOnly, Population, audit
from glasshouse.core.outputs import losses_from_logits
from glasshouse.query.classify import query

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
TWO = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
THREE = np.digitize(X[:, 1] + RNG.normal(size=90), [-0.5, 0.5])


def by_probability(rows: Any, labels: Any) -> Any:
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows if rows.ndim == 2 else np.stack([1 - rows, rows], axis=1)
    return -np.log(rows[np.arange(len(rows)), labels])


def xgboost(labels: Any, classes: int) -> Any:
    kind = {"objective": "binary:logistic"} if classes == 2 else {"objective": "multi:softprob", "num_class": classes}
    model = boosted({**kind, "max_depth": 2, "nthread": 1}, DMatrix(X, labels), 5)
    return model, model.predict(DMatrix(X))


def lightgbm(labels: Any, classes: int) -> Any:
    kind = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
    model = light_train({**kind, "verbose": -1, "num_threads": 1, "num_leaves": 4}, LightSet(X, labels), 5)
    return model, model.predict(X)


def catboost(labels: Any, classes: int) -> Any:
    loss = "Logloss" if classes == 2 else "MultiClass"
    model = CatBoost({"loss_function": loss, "iterations": 5, "verbose": False, "allow_writing_files": False})
    model.fit(X, labels)
    return model, model.predict(X, prediction_type="Probability")


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("make", [xgboost, lightgbm, catboost])
def test_boosters_are_asked_as_they_are(make: Any, labels: Any) -> None:
    model, known = make(labels, labels.max() + 1)
    population = Population(X, labels)
    assert np.allclose(query(model, population).loss, by_probability(known, labels), atol=1e-5)
    votes = LabelOnly(votes=2).answers(model, population)
    assert votes.correct is not None
    sure = known.argmax(axis=1) if known.ndim == 2 else (known > 0.5).astype(int)
    assert np.array_equal(votes.correct, sure == labels)


def test_boosters_predict_numbers_of_a_regression() -> None:
    model = boosted({"max_depth": 2, "nthread": 1}, DMatrix(X, X[:, 0]), 5)
    train = lambda population, members, seed: boosted(  # noqa: E731
        {"max_depth": 2, "nthread": 1}, DMatrix(population.x[members], population.y[members]), 5
    )
    members = np.arange(90) < 45
    population = Population(X, X[:, 0], regression=True)
    found = audit(population, model=model, members=members, trainer=train, shadows=2, attacks=["base"])
    assert np.isfinite(found.records()["base_score"]).all()


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("model", [LinearSVC(), SVC(), RidgeClassifier()], ids=["LinearSVC", "SVC", "RidgeClassifier"])
def test_margins_are_logits_and_the_report_says_so(model: Any, labels: Any) -> None:
    names = np.array(["a", "b", "c"])[labels]
    model = model.fit(X, names)
    margins = model.decision_function(X)
    margins = margins if margins.ndim == 2 else np.stack([0 * margins, margins], axis=1)
    answers = query(model, Population(X, names))
    assert np.array_equal(answers.loss, losses_from_logits(margins, labels))
    assert answers.notes == ("The model gives no probabilities; its decision function is used as logits.",)
    unseen = query(model, Population(X, names, classes=["a", "aa", "b", "c"][: labels.max() + 2]))
    assert np.isfinite(unseen.loss).all()


def test_estimators_with_margins_are_audited() -> None:
    found = audit(Population(X, TWO), trainer=SVC(C=1e3, gamma=5.0), shadows=4, attacks=["base"])
    assert found.table()["auc"][0] > 0.7
    assert any("decision function" in note for note in found.context.notes)
    labels = Attacker(query=LabelOnly(votes=4))
    asked = audit(Population(X, TWO), trainer=LinearSVC(), shadows=2, attacks=["base"], attacker=labels)
    assert any("Label-only" in note for note in asked.context.notes)
    pairs = SVC(decision_function_shape="ovo").fit(X, RNG.integers(4, size=90))
    with pytest.raises(InputError, match=r'6 columns for 4 classes. Say decision_function_shape="ovr"'):
        query(pairs, Population(X, np.arange(90) % 4))


def test_dicts_of_a_pipeline_are_probabilities() -> None:
    population = Population(X, np.array(["no", "yes"])[TWO])
    chance = 1 / (1 + np.exp(-X[:, 0]))

    def answer(x: Any) -> Any:
        p = 1 / (1 + np.exp(-x[:, 0]))
        return [[{"label": "yes", "score": float(one)}, {"label": "no", "score": float(1 - one)}] for one in p]

    wanted = by_probability(chance, TWO)
    assert np.allclose(query(answer, population).loss, wanted)
    assert np.allclose(
        query(
            lambda x: [
                [{**one, "label": {"no": "LABEL_0", "yes": "LABEL_1"}[one["label"]]} for one in r] for r in answer(x)
            ],
            population,
        ).loss,
        wanted,
    )
    top = query(lambda x: [max(row, key=lambda one: one["score"]) for row in answer(x)], population)
    assert "likeliest classes alone" in top.notes[0]
    with pytest.raises(InputError, match="answers about 'maybe', which is no class"):
        query(lambda x: [{"label": "maybe", "score": 1.0}] * len(x), population)


def stand_in(module: str, name: str, **attributes: Any) -> Any:
    """An object whose class says that it comes from a library that need not be installed."""
    return type(name, (), {"__module__": module, **attributes})()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_that_names_its_classes_is_put_into_their_order(frame: Any) -> None:
    """Before, members looked swapped."""
    x, chances = np.arange(4.0)[:, None], np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    population, places = Population(x, ["no", "no", "yes", "yes"]), (("yes", 1), ("no", 0))
    asked = query(lambda x: chances[x[:, 0].astype(int)], population)
    turned = query(lambda x: frame({name: chances[x[:, 0].astype(int), at] for name, at in places}), population)
    np.testing.assert_array_equal(turned.loss, asked.loss)


def test_a_module_is_left_in_training_as_it_was() -> None:
    """Part by part: a user may have frozen the statistics of one."""
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model[2].eval()
    before, random = copy.deepcopy(model.state_dict()), np.random.default_rng(0)
    population = Population(random.normal(size=(20, 2)).astype(np.float32), random.integers(2, size=20))
    query(model, population)
    assert [part.training for part in model] == [True, True, False, True]
    assert all(bool((value == before[name]).all()) for name, value in model.state_dict().items())


def test_sessions_results_and_kin_are_known_by_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    population = Population(X, TWO)
    p = 1 / (1 + np.exp(-X[:, 0]))
    wanted = by_probability(p, TWO)

    def sigmoid(self: Any, x: Any, **_: Any) -> Any:
        return 1 / (1 + np.exp(-np.asarray(x, dtype=np.float64)[:, 0]))

    def run(self: Any, _: Any, feed: Any) -> Any:
        p = sigmoid(self, feed["input"])
        assert feed["input"].dtype == np.float32
        return [(p > 0.5).astype(np.int64), [{0: float(1 - one), 1: float(one)} for one in p]]

    inputs = [SimpleNamespace(name="input", type="tensor(float)")]
    session = stand_in("onnxruntime.capi.session", "InferenceSession", run=run, get_inputs=lambda self: inputs)
    assert np.allclose(query(session, population).loss, wanted, atol=1e-6)
    more = stand_in("onnxruntime.capi", "InferenceSession", get_inputs=lambda self: inputs * 2)
    with pytest.raises(InputError, match="the session has the inputs 'input', 'input'"):
        query(more, population)

    tools = ModuleType("statsmodels.tools")
    tools.add_constant = lambda x, has_constant: np.column_stack([np.ones(len(x)), x])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "statsmodels", ModuleType("statsmodels"))
    monkeypatch.setitem(sys.modules, "statsmodels.tools", tools)
    for names, shift in ((["const", "a", "b", "c"], 1), (["a", "b", "c"], 0)):
        predict = lambda self, x, shift=shift: sigmoid(self, x[:, shift:])  # noqa: E731
        model = SimpleNamespace(exog_names=names)
        results = stand_in("statsmodels.discrete", "BinaryResultsWrapper", predict=predict, model=model)
        assert np.allclose(query(results, population).loss, wanted)

    keras = stand_in("keras.src.models", "Model", predict=lambda self, x, verbose: sigmoid(self, x)[:, None])
    assert np.allclose(query(keras, population).loss, wanted)
    weak = Population(X, 1 - TWO)  # alone, such a column would pass for logits
    keras.layers = [SimpleNamespace(activation=SimpleNamespace(__name__="sigmoid"))]
    assert np.allclose(query(keras, weak).loss, by_probability(p, 1 - TWO))
    assert np.allclose(query(stand_in("mine", "Own", predict=sigmoid), population).loss, wanted)
    pipe = stand_in(
        "transformers.pipelines.text_classification",
        "TextClassificationPipeline",
        __call__=lambda self, texts, top_k: [[{"label": str(int(text == "b")), "score": 1.0}] for text in texts],
    )
    texts = Population(["a", "b"] * 5, [0, 1] * 5)
    assert np.all(query(pipe, texts).correct)
