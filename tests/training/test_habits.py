from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Attacker, InputError, Population, SklearnTrainer, audit
from glasshouse.core.randomness import seed_for
from glasshouse.query.classify import population_logits
from glasshouse.training.sklearn import SEEDS, as_trainer, prepare
from glasshouse.training.trainer import seeded

X = np.random.default_rng(0).normal(size=(80, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
MEMBERS = np.arange(80) % 2 == 0


class Mine:
    """A user's own class, with every name that libraries use for a seed."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = dict.fromkeys(SEEDS, 3)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.given

    def set_params(self, **given: Any) -> None:
        self.given |= given


def test_every_name_of_a_seed_is_set_each_to_its_own_number() -> None:
    mine = Mine()
    prepare(mine, seed=7, classes=2, seen=2)
    assert mine.given == {name: seed_for(7, name) % 2**32 for name in SEEDS}


def test_seeds_of_nested_estimators_are_what_they_always_were() -> None:
    """Pools on disk were trained with these numbers."""
    nested = make_pipeline(GridSearchCV(RandomForestClassifier(), {"max_depth": [1, 2]}))
    prepare(nested, seed=3, classes=2, seen=2)
    inner = nested.steps[0][1].estimator.random_state
    assert inner == seed_for(3, "gridsearchcv__estimator__random_state") % 2**32


def test_random_streams_follow_the_seed_inside_and_go_on_outside() -> None:
    def draws() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), float(torch.rand(1))  # noqa: NPY002, S311

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    expected = draws()
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    with seeded(0):
        inside = draws()
    with pytest.raises(ValueError, match="inside"), seeded(0):
        raise ValueError("inside")
    assert draws() == expected
    with seeded(0):
        assert draws() == inside
    with seeded(1):
        assert draws() != inside


def test_shuffled_folds_of_a_search_follow_the_seed() -> None:
    """A splitter has no get_params, so its numbers come from numpy's own stream."""
    population = Population(X, Y)
    folds = StratifiedKFold(3, shuffle=True)
    trainer = SklearnTrainer(estimator=CalibratedClassifierCV(DecisionTreeClassifier(max_depth=2), cv=folds))
    first, again, other = (population_logits(trainer(population, MEMBERS, seed), population) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_an_estimator_may_stand_for_its_trainer() -> None:
    population = Population(X, Y)
    options: dict[str, Any] = {"members": MEMBERS, "shadows": 4, "attacks": ["base"]}
    short = audit(
        population, trainer=LogisticRegression(), attacker=Attacker(trainer=DecisionTreeClassifier()), **options
    )
    long = audit(
        population,
        trainer=SklearnTrainer(estimator=LogisticRegression()),
        attacker=Attacker(trainer=SklearnTrainer(estimator=DecisionTreeClassifier())),
        **options,
    )
    np.testing.assert_array_equal(short.outcomes["base"].scores, long.outcomes["base"].scores)
    with pytest.raises(InputError, match=r"estimator: is the class LogisticRegression; give LogisticRegression\(…\)"):
        as_trainer(LogisticRegression)
    with pytest.raises(InputError, match="estimator: VotingClassifier has no predict_proba or decision_function"):
        audit(population, trainer=VotingClassifier([("svc", LinearSVC())]), **options)


def test_a_stack_without_a_final_estimator_has_probabilities_once_it_is_fitted() -> None:
    stack = StackingClassifier([("tree", DecisionTreeClassifier(max_depth=2))], cv=2)
    model = as_trainer(make_pipeline(stack))(Population(X, Y), MEMBERS, seed=0)
    assert model.predict_proba(X).shape == (80, 2)


def test_what_is_already_fitted_does_not_teach_shadow_models() -> None:
    """With it, every shadow model would know the target's members, and a leak would look like none."""
    fitted = LogisticRegression().fit(X[MEMBERS], Y[MEMBERS])
    with pytest.raises(InputError, match="holds a LogisticRegression that is already fitted"):
        as_trainer(CalibratedClassifierCV(FrozenEstimator(fitted)))
    forest = RandomForestClassifier(3).fit(X[MEMBERS], Y[MEMBERS])
    before = forest.predict_proba(X)
    model = as_trainer(forest)(Population(X, Y), ~MEMBERS, seed=0)
    assert not np.array_equal(model.predict_proba(X), before)
    np.testing.assert_array_equal(forest.predict_proba(X), before)


class Plain:
    """A user's own class: no get_params, no classes_, and fit returns nothing."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> None:
        self.tree = DecisionTreeClassifier(max_features=1).fit(x, y)  # numpy's own stream decides

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.tree.predict_proba(x)
        return found


def test_a_class_of_the_users_own_is_copied_and_seeded() -> None:
    mine, population = Plain(), Population(X, Y)
    trainer = SklearnTrainer(estimator=mine)
    first, again = (trainer(population, MEMBERS, seed=0) for _ in range(2))
    assert not hasattr(mine, "tree")
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))


def test_a_text_column_is_named_in_the_refusal() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    table = pandas.DataFrame({"age": X[:, 0], "town": np.where(X[:, 1] > 0, "Ulm", "Bonn")})
    with pytest.raises(InputError, match="could not convert string to float.* Column 'town' holds text: encode it"):
        as_trainer(DecisionTreeClassifier())(Population(table, Y), MEMBERS, seed=0)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (LogisticRegression(), "model: LogisticRegression could not answer .*NotFittedError.* Fit it on the members"),
        (make_pipeline(LogisticRegression()), "model: Pipeline could not answer .* Fit it on the members"),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}), "model: GridSearchCV could not answer .* Fit it"),
        (LogisticRegression, "model: is the class LogisticRegression; give a model that was trained"),
        (
            VotingClassifier([("svc", LinearSVC())]).fit(X, Y),
            "model: VotingClassifier has no predict_proba or decision_function",
        ),
        (LogisticRegression().fit(X[:, :2], Y), "model: LogisticRegression could not answer .*expecting 2 features"),
        (LogisticRegression().fit(X, Y == "yes"), "model: it knows the class False, which is not among the pop"),
        (torch.nn.Linear(2, 2), "model: it failed on records of shape"),
        (lambda x: x[:, 7], "model: function could not answer .*IndexError"),
    ],
)
def test_a_model_that_cannot_answer_is_refused_before_anything_is_trained(model: Any, said: str) -> None:
    def never(population: Population, members: np.ndarray, seed: int) -> Any:
        raise AssertionError("a shadow model was trained")

    with pytest.raises(InputError, match=said):
        audit(Population(X, Y), model=model, members=MEMBERS, trainer=never, shadows=4)


def test_swapped_columns_are_noticed() -> None:
    """A callable cannot say what its columns are; with them swapped, members have the higher losses."""
    population, tree = Population(X, Y), DecisionTreeClassifier(max_depth=3).fit(X[MEMBERS], Y[MEMBERS])
    options: dict[str, Any] = {"members": MEMBERS, "trainer": DecisionTreeClassifier(), "shadows": 4}
    swapped = audit(population, model=lambda x: tree.predict_proba(x)[:, ::-1], attacks=["base"], **options)
    assert any("if its columns are put into another order" in note for note in swapped.context.notes)
    right = audit(population, model=tree, attacks=["base"], **options)
    assert not any("another order" in note for note in right.context.notes)
