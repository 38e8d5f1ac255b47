"""A regression from beginning to end: through every kind of model, and refused where it cannot be."""

from __future__ import annotations

import functools
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor
from torch import nn

from glasshouse import (
    Attacker,
    InputError,
    LabelOnly,
    Population,
    SklearnTrainer,
    TorchTrainer,
    audit,
    audit_evidence,
    mlp,
)
from glasshouse.auditing.result import AuditResult
from glasshouse.core.arrays import BoolArray
from glasshouse.evidence import read_evidence
from glasshouse.query.regress import predict
from glasshouse.report import compare, print_summary, read_run, render_comparison

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 30)).astype(np.float32)
Y = 100.0 + 5.0 * (X[:, 0] + np.sin(X[:, 1]) + RNG.normal(size=240))
POPULATION = Population(X, Y, regression=True)
LINEAR = SklearnTrainer(estimator=LinearRegression())
adam = functools.partial(torch.optim.Adam, lr=0.02)


def area(result: AuditResult, attack: str) -> float:
    metrics = result.outcomes[attack].metrics
    assert metrics is not None
    return metrics.auc


@pytest.fixture(scope="module")
def linear() -> AuditResult:
    return audit(POPULATION, trainer=LINEAR, shadows=8)


def test_a_linear_model_with_many_features_leaks_and_the_default_attacks_find_it(linear: AuditResult) -> None:
    assert list(linear.outcomes) == ["base", "lira", "rmia", "stacked"]
    assert linear.left_out == {}
    assert all(area(linear, name) > 0.58 for name in linear.outcomes)
    assert linear.verdict_attack is not None
    assert linear.verdict_attack.test.leak


def test_the_report_tells_errors_and_no_accuracy_and_no_nan(linear: AuditResult, tmp_path: Path) -> None:
    predicted = predict(LinearRegression().fit(X, Y), POPULATION)
    assert predicted.figures(np.ones(240, dtype=bool)).keys() == {"train_rmse", "train_r2"}
    text = io.StringIO()
    print_summary(linear.summary(), Console(file=text, width=200), verbose=True)
    assert "Target: root mean squared error" in text.getvalue()
    assert "(R² 0." in text.getvalue()
    linear.save(tmp_path / "run")
    figures = json.loads((tmp_path / "run" / "metrics.json").read_text())["target"]
    assert figures.keys() == {"train_rmse", "test_rmse", "train_r2", "test_r2"}
    assert figures["train_rmse"] < figures["test_rmse"]
    page = (tmp_path / "run" / "report.html").read_text()
    again = read_run(tmp_path / "run")
    assert again.context.test_rmse == linear.context.test_rmse
    other = render_comparison(compare({"one": linear, "two": linear}))
    for words in (text.getvalue(), page, other, (tmp_path / "run" / "records.csv").read_text()):
        lines = words.lower().replace("balanced accuracy", "").replace("balanced_accuracy", "")
        assert "accuracy" not in lines
        assert " nan" not in lines
        assert ",nan" not in lines
    assert "test error" in other
    assert linear.records()["label"].tolist() == Y.tolist()
    saved = read_evidence(tmp_path / "run" / "evidence.npz").evidence
    for name in ("base", "lira"):
        scores = audit_evidence(saved, attacks=[name]).outcomes[name].scores
        assert scores == pytest.approx(linear.outcomes[name].scores)


def test_groups_of_a_regression_are_quartiles_of_its_target(linear: AuditResult) -> None:
    assert {group.column for group in linear.summary().groups} == {"target value"}
    assert len(linear.summary().groups) == 4


def two_outputs() -> nn.Module:
    return nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))


SMALL = Population(X, (Y - 100.0) / 5.0, regression=True)


@pytest.mark.parametrize("module", [mlp(30, 1, hidden=[64]), two_outputs])
def test_a_module_with_a_mean_or_with_a_mean_and_a_log_variance_is_trained_and_audited(module: Any) -> None:
    trainer = TorchTrainer(module=module, optimizer=adam, epochs=30, batch_size=32)
    result = audit(SMALL, trainer=trainer, shadows=4, attacks=["base", "lira", "regressed"])
    assert area(result, "base") > 0.6
    assert area(result, "lira") > 0.6
    told = " ".join(result.context.notes)
    assert ("a mean and a variance" in told) == (module is two_outputs)
    assert result.context.train_rmse is not None
    assert result.context.train_rmse < 0.6


def test_modules_trained_together_are_those_trained_alone() -> None:
    trainer = TorchTrainer(module=two_outputs, optimizer=adam, epochs=3, batch_size=32)
    members = np.stack([np.arange(240) < 120, np.arange(240) >= 120])
    together = trainer.train_many(SMALL, members, seeds=[1, 2])
    for model, who, seed in zip(together, members, (1, 2), strict=True):
        alone = trainer(SMALL, who, seed)
        with torch.no_grad():
            assert torch.allclose(model(torch.from_numpy(X)), alone(torch.from_numpy(X)), atol=1e-4)


def test_a_function_is_trained_kept_as_answers_and_found_again(tmp_path: Path) -> None:
    def train(population: Population, members: BoolArray, seed: int) -> Any:
        weights = np.linalg.lstsq(population.x[members], population.y[members], rcond=None)[0]
        return lambda x: x @ weights

    first = audit(POPULATION, trainer=train, shadows=4, attacks=["base"], pool=tmp_path / "pool")
    again = audit(POPULATION, trainer=train, shadows=4, attacks=["base"], pool=tmp_path / "pool")
    plain = audit(POPULATION, trainer=train, shadows=4, attacks=["base"])
    assert (first.outcomes["base"].scores == again.outcomes["base"].scores).all()
    assert first.outcomes["base"].scores == pytest.approx(plain.outcomes["base"].scores)


def test_an_estimator_is_kept_and_found_again(tmp_path: Path) -> None:
    trainer = SklearnTrainer(estimator=DecisionTreeRegressor())
    runs = [audit(POPULATION, trainer=trainer, shadows=4, attacks=["lira"], pool=tmp_path / "pool") for _ in range(2)]
    assert (runs[0].outcomes["lira"].scores == runs[1].outcomes["lira"].scores).all()
    assert area(runs[0], "lira") > 0.99  # a full tree predicts its members without error


def test_members_that_the_target_was_not_trained_on_are_not_found() -> None:
    """The target and the shadow models are trained on other random halves than they are said to be."""
    shown = 0
    for seed in range(12):

        def untold(population: Population, members: BoolArray, seed: int) -> Any:
            drawn = np.random.default_rng(seed).random(len(members)) < 0.5
            return Ridge().fit(population.x[drawn], population.y[drawn])

        result = audit(POPULATION, trainer=untold, shadows=4, attacks=["base", "lira", "rmia"], seed=seed)
        assert result.verdict_attack is not None
        shown += bool(result.verdict_attack.test.leak)
    assert shown <= 2  # at a level of 5 % three or more of 12 happen once in 50


CLASSES = Population(X, (Y > 100).astype(int))
REFUSALS: dict[str, tuple[Any, str]] = {
    "real numbers without a declaration": (
        lambda: Population(X, Y),
        r"240 different numbers, such as .* Say Population\(x, y, regression=True\)",
    ),
    "whole numbers that hardly repeat": (
        lambda: Population(X, np.arange(240)),
        "look like the targets of a regression",
    ),
    "names as targets": (lambda: Population(X, Y.astype(str), regression=True), "real numbers, but the targets are of"),
    "equal targets": (lambda: Population(X, np.ones(240), regression=True), "all records have the same target"),
    "classes of a regression": (lambda: Population(X, Y, regression=True, classes=[1, 2]), "has no classes"),
    "two targets per record": (lambda: Population(X, X[:, :2], regression=True), "one label per record"),
    "a classifier for a regression": (
        lambda: audit(POPULATION, trainer=SklearnTrainer(estimator=RandomForestClassifier())),
        "RandomForestClassifier is a classifier, but the population is a regression",
    ),
    "a regressor for classes": (
        lambda: audit(CLASSES, trainer=SklearnTrainer(estimator=Ridge())),
        "Ridge is a regressor, but the labels are 2 classes",
    ),
    "a classifier as the target": (
        lambda: audit(POPULATION, model=LogisticRegression().fit(X, Y > 100), members=Y > 100, trainer=LINEAR),
        "model: LogisticRegression is a classifier",
    ),
    "an attack that needs classes": (
        lambda: audit(POPULATION, trainer=LINEAR, attacks=["base", "classifier", "informia"]),
        "classifier: it cannot attack a regression: it looks at the probabilities of all classes",
    ),
    "labels of a regression": (
        lambda: audit(POPULATION, trainer=LINEAR, attacker=Attacker(query=LabelOnly())),
        "a regression has no labels to ask for",
    ),
    "labels of a given regression": (
        lambda: audit(
            POPULATION,
            model=lambda x: x[:, 0],
            members=np.arange(len(Y)) < 120,
            trainer=LINEAR,
            attacker=Attacker(query=LabelOnly()),
        ),
        "a regression has no labels to ask for",
    ),
    "a module with three outputs": (
        lambda: audit(SMALL, trainer=TorchTrainer(module=mlp(30, 3), epochs=1)),
        r"answers 64 records with shape \[64, 3\]; a regression expects",
    ),
    "predictions of a wrong shape": (lambda: predict(lambda x: x, POPULATION), r"with shape \(240, 30\); a regression"),
    "two arrays": (lambda: predict(lambda x: (x[:, 0], x[:, 1]), POPULATION), "answers with two arrays"),
    "no numbers": (
        lambda: predict(lambda x: x[:, 0] / 0 * 0, POPULATION),
        "model: NaN or infinite for 240 of 240 records: '0', '1'",
    ),
    "nothing to ask": (lambda: predict(3, POPULATION), "int cannot be queried"),
    "predictions for classes": (
        lambda: audit(
            Population(X, RNG.integers(5, size=240)), trainer=lambda p, m, seed: lambda x: x[:, 0], attacks=["base"]
        ),
        r"say Population\(x, y, regression=True\)",
    ),
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("case", REFUSALS)
def test_what_does_not_fit_is_refused_in_one_line(case: str) -> None:
    call, message = REFUSALS[case]
    with pytest.raises(InputError, match=message):
        call()


def test_models_that_answer_differently_are_refused() -> None:
    def train(population: Population, members: BoolArray, seed: int) -> Any:
        return lambda x: x[:, :2]

    with pytest.raises(InputError, match="some answer with a mean and a log-variance"):
        audit(POPULATION, model=lambda x: x[:, 0], members=Y > 100, trainer=train, attacks=["base"], shadows=4)


def test_numbers_that_are_classes_stay_classes() -> None:
    assert len(Population(X, np.repeat(np.arange(60), 4)).classes) == 60
    assert len(Population(X, np.arange(240), regression=False).classes) == 240
    assert len(Population(X, np.tile([0.5, 1.5, 2.5], 80)).classes) == 3
    assert len(Population(X, [f"name {n}" for n in range(240)]).classes) == 240
