"""Labels alone: votes of changed records, the same for every model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from glasshouse import Attacker, InputError, LabelOnly, Population, QueryOptions, SklearnTrainer, audit
from glasshouse.core.arrays import BoolArray
from glasshouse.evidence import query
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.labels_only import predicted_labels
from glasshouse.training import CropAndFlip

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 20))
Y = np.where(X[:, 0] + RNG.normal(size=200) > 0, "yes", "no")
POPULATION = Population(X, Y)
MEMBERS = np.arange(200) < 100
TREE = SklearnTrainer(estimator=DecisionTreeClassifier())


def sign(x: Any) -> Any:
    return np.where(x[:, 0] > 0, "yes", "no")


def test_shares_of_votes_are_those_counted_one_by_one() -> None:
    """An obviously right twin: every record and every vote by itself, from the same draws."""
    asked: list[Any] = []

    def remembering(x: Any) -> Any:
        asked.append(x.copy())
        return sign(x)

    how = LabelOnly(votes=5, noise=0.8, keep_logits=True)
    answers = how.answers(remembering, POPULATION)
    assert len(asked) == 5
    assert (asked[0] == X).all()  # the first vote is about the record itself
    for vote, x in enumerate(asked):  # the noise grows evenly
        assert (x - X).std() == pytest.approx(0.8 * X.std(axis=0).mean() * vote / 4, rel=0.1, abs=1e-12)
    for n in range(200):
        right = np.mean([sign(x[n : n + 1])[0] == Y[n] for x in asked])
        assert np.exp(-answers.loss[n]) == pytest.approx(max(right, np.finfo(float).eps), rel=1e-6)
        assert answers.correct[n] == (sign(X[n : n + 1])[0] == Y[n])
    assert answers.resolution == 0.2
    assert answers.logits is not None
    assert answers.logits.shape == (200, 2)


def test_the_noise_depends_on_the_seed_and_not_on_the_model_or_the_batch() -> None:
    first = LabelOnly(votes=8, seed=1).answers(sign, POPULATION).loss
    assert (LabelOnly(votes=8, seed=1, batch_size=7).answers(sign, POPULATION).loss == first).all()
    assert (LabelOnly(votes=8, seed=2).answers(sign, POPULATION).loss != first).any()


def test_features_of_zeros_and_ones_are_flipped() -> None:
    bits = (RNG.random((400, 30)) < 0.5).astype(np.float32)
    asked: list[Any] = []

    def remembering(x: Any) -> Any:
        asked.append(x)
        return np.zeros(len(x), dtype=int)

    LabelOnly(votes=3, flips=0.2).answers(remembering, Population(bits, RNG.integers(2, size=400)))
    assert all(set(np.unique(x)) == {0.0, 1.0} for x in asked)
    assert [(x != bits).mean() for x in asked] == pytest.approx([0.0, 0.1, 0.2], abs=0.02)
    assert asked[1].dtype == np.float32


def test_a_data_frame_of_numbers_keeps_its_columns() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    asked: list[Any] = []
    how = LabelOnly(votes=3)

    def remembering(x: Any) -> Any:
        asked.append(x)
        return sign(x.to_numpy())

    framed = how.answers(remembering, Population(frame, Y))
    assert (framed.loss == how.answers(sign, Population(X[:, :2], Y)).loss).all()
    assert asked[1].columns.tolist() == ["a", "b"]


def test_images_are_changed_by_an_augmentation() -> None:
    images = RNG.random((30, 1, 6, 6)).astype(np.float32)
    asked: list[Any] = []

    class Brightness(nn.Module):
        def forward(self, x: Any) -> Any:
            asked.append(x)
            return torch.stack([x.mean((1, 2, 3)), 0.5 * torch.ones(len(x))], dim=1)

    population = Population(images, RNG.integers(2, size=30))
    how = LabelOnly(votes=3, augmentation=CropAndFlip(padding=1))
    first = how.answers(Brightness(), population)
    assert (asked[0].numpy() == images).all()
    assert (asked[1].numpy() != images).any()
    assert (how.answers(Brightness(), population).loss == first.loss).all()


def test_an_estimator_without_probabilities_is_audited_and_kept(tmp_path: Path) -> None:
    trainer = SklearnTrainer(estimator=LinearSVC())
    runs = [
        audit(
            POPULATION,
            trainer=trainer,
            shadows=4,
            attacks=["base"],
            attacker=Attacker(query=LabelOnly(votes=16)),
            pool=tmp_path / "p",
        )
        for _ in range(2)
    ]
    assert (runs[0].outcomes["base"].scores == runs[1].outcomes["base"].scores).all()
    assert any("Label-only: models were asked for labels alone, 16 times" in note for note in runs[0].context.notes)
    assert any("weak" in note for note in runs[0].context.notes)
    with pytest.raises(InputError, match=r"VotingClassifier has no predict_proba.*query=LabelOnly\(\)"):
        audit(POPULATION, trainer=VotingClassifier([("svc", LinearSVC())]), shadows=4)


def test_labels_show_a_leak_that_is_smaller_than_that_of_probabilities() -> None:
    """Trees remember: with labels alone, the members of the target are found too."""
    found = audit(POPULATION, trainer=TREE, attacks=["base"], attacker=Attacker(query=LabelOnly(votes=16)))
    metrics = found.outcomes["base"].metrics
    assert metrics is not None
    assert metrics.auc > 0.6
    assert found.context.train_accuracy == 1.0  # judged by the records themselves


def test_a_model_with_probabilities_is_asked_for_labels_too() -> None:
    model = LogisticRegression().fit(X, Y)
    labels = LabelOnly(votes=4).answers(lambda x: model.predict(x), POPULATION)
    assert (LabelOnly(votes=4).answers(model, POPULATION).loss == labels.loss).all()
    scores = LabelOnly(votes=4).answers(lambda x: model.predict_proba(x), POPULATION)
    assert (scores.loss == labels.loss).all()


def test_a_module_with_one_logit_is_asked_too() -> None:
    class First(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:, :1]

    how = LabelOnly(votes=4)
    expected = how.answers(sign, POPULATION).loss
    assert (how.answers(First(), POPULATION).loss == expected).all()
    assert (how.answers(nn.Sequential(First(), nn.Sigmoid()), POPULATION).loss == expected).all()


def numbers(population: Population, members: BoolArray, seed: int) -> Any:
    return lambda x: (x[:, 0] > 0).astype(int)


REFUSALS: dict[str, tuple[Any, str]] = {
    "class numbers without LabelOnly": (
        lambda: query(lambda x: np.arange(3)[(x[:, 0] > 0).astype(int)], Population(X, RNG.integers(3, size=200))),
        r"answered with class numbers.*query=LabelOnly\(\)",
    ),
    "0 and 1 without LabelOnly": (
        lambda: query(lambda x: (x[:, 0] > 0).astype(int), POPULATION),
        r"look like class numbers.*query=LabelOnly\(\)",
    ),
    "names without LabelOnly": (lambda: query(sign, POPULATION), r"instead of numbers.*query=LabelOnly\(\)"),
    "an estimator without probabilities": (
        lambda: query(VotingClassifier([("svc", LinearSVC())]).fit(X, Y), POPULATION),
        r"VotingClassifier has no predict_proba.*query=LabelOnly\(\)",
    ),
    "labels that the population does not have": (
        lambda: audit(
            POPULATION, trainer=numbers, attacker=Attacker(query=LabelOnly(votes=2)), attacks=["base"], shadows=4
        ),
        "expects the population's own labels, such as 'no'.*it answered [01]",
    ),
    "a regressor": (
        lambda: predicted_labels(Ridge().fit(X, X[:, 0]), POPULATION),
        "Ridge is a regressor",
    ),
    "kept answers": (
        lambda: query(KeptAnswers(np.zeros((200, 2))), POPULATION, how=LabelOnly()),
        "when probabilities were asked for",
    ),
    "nothing to ask": (lambda: predicted_labels(3, POPULATION), "int cannot be queried"),
    "a data frame": (
        lambda: LabelOnly().answers(sign, Population(pd.DataFrame({"a": ["x"] * 200}), Y)),
        "features are a DataFrame of something else. Give augmentation",
    ),
    "whole numbers": (
        lambda: LabelOnly().answers(sign, Population(np.arange(400).reshape(200, 2), Y)),
        "the features are of type int64",
    ),
    "one vote": (lambda: LabelOnly(votes=1), "votes: 1 is too few"),
    "no noise": (lambda: LabelOnly(noise=0.0), "give positive numbers"),
    "a temperature": (lambda: LabelOnly(temperature=2.0), "labels have none"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_does_not_fit_is_refused_in_one_line(case: str) -> None:
    call, message = REFUSALS[case]
    with pytest.raises(InputError, match=message):
        call()


def test_ordinary_queries_are_as_before() -> None:
    assert not QueryOptions.labels_only
    assert query(lambda x: x[:, 0], POPULATION).resolution is None
