from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from glasshouse import InputError, Population, SklearnTrainer

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(80, 4)), RANDOM.choice(["x", "y", "z"], size=80))
MEMBERS = np.arange(80) < 40


def test_every_random_state_in_a_pipeline_follows_the_seed() -> None:
    trainer = SklearnTrainer(estimator=make_pipeline(StandardScaler(), RandomForestClassifier(5)))
    first, again, other = (trainer(POPULATION, MEMBERS, seed).predict_proba(POPULATION.x) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_given_estimator_is_not_fitted_itself() -> None:
    forest = RandomForestClassifier(5)
    fitted = SklearnTrainer(estimator=forest)(POPULATION, MEMBERS, 0)
    assert not hasattr(forest, "classes_")
    assert fitted.classes_.tolist() == ["x", "y", "z"]


def test_an_estimator_without_probabilities_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match="VotingClassifier has no predict_proba or decision_function"):
        SklearnTrainer(estimator=VotingClassifier([("svc", LinearSVC())])).check(POPULATION)


def test_members_of_one_class_are_refused() -> None:
    with pytest.raises(InputError, match="all members have the same label"):
        SklearnTrainer(estimator=RandomForestClassifier())(POPULATION, POPULATION.y == 0, 0)
