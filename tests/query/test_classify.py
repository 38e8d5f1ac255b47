from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from torch import nn

from glasshouse import InputError, Population, QueryOptions
from glasshouse.evidence import accuracy, query
from glasshouse.query.classify import check_model
from glasshouse.training import mlp

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(50, 3)).astype(np.float32), RANDOM.choice(["a", "b", "c"], size=50))


def test_batches_do_not_change_the_losses() -> None:
    torch.manual_seed(0)
    model = mlp(3, 3)()
    whole, parts = (query(model, POPULATION, how=QueryOptions(batch_size=size)).loss for size in (50, 7))
    np.testing.assert_allclose(whole, parts, rtol=1e-6)


def test_losses_are_those_of_torch_in_double_precision() -> None:
    torch.manual_seed(0)
    model = mlp(3, 3)()
    with torch.no_grad():
        expected = nn.functional.cross_entropy(
            model(torch.from_numpy(POPULATION.x)).double() / 2, torch.from_numpy(POPULATION.y), reduction="none"
        )
    found = query(model, POPULATION, how=QueryOptions(temperature=2.0, keep_logits=True))
    np.testing.assert_allclose(found.loss, expected, rtol=1e-10)
    assert found.logits is not None
    assert found.logits.shape == (50, 3)


def test_a_confident_network_keeps_its_digits() -> None:
    """Float32 cross-entropy says 0 for each of these; the losses differ by twenty orders of magnitude."""
    population = Population(np.array([[50.0], [100.0]], dtype=np.float32), [1, 1], classes=[0, 1])
    loss = query(lambda x: x[:, 0], population).loss
    np.testing.assert_allclose(loss, np.exp([-50.0, -100.0]), rtol=1e-12)


def test_dropout_is_off_and_the_module_comes_back_in_evaluation_mode() -> None:
    model = mlp(3, 3, dropout=0.9)().train()
    assert (query(model, POPULATION).loss == query(model, POPULATION).loss).all()


def test_an_estimator_answers_by_the_names_of_its_classes() -> None:
    exact = Population(POPULATION.x.astype(np.float64), POPULATION.classes[POPULATION.y])
    model = LogisticRegression().fit(exact.x, exact.classes[exact.y])
    expected = -np.log(model.predict_proba(exact.x)[np.arange(50), exact.y])
    found = query(model, exact)
    np.testing.assert_allclose(found.loss, expected, rtol=1e-9)
    assert accuracy(found, np.ones(50, dtype=bool)) == model.score(exact.x, exact.classes[exact.y])


def test_a_class_that_an_estimator_never_saw_has_probability_zero() -> None:
    seen = POPULATION.y != 1
    model = GaussianNB().fit(POPULATION.x[seen], POPULATION.classes[POPULATION.y[seen]])
    loss = query(model, POPULATION).loss
    assert (loss[~seen] > 15).all()  # float32 features gave float32 probabilities
    assert np.isfinite(loss).all()


def test_a_class_that_the_population_does_not_have_is_refused() -> None:
    model = GaussianNB().fit(POPULATION.x, np.where(POPULATION.y == 0, "z", "a"))
    with pytest.raises(InputError, match="knows the class 'z'"):
        query(model, POPULATION)


def test_outputs_of_the_wrong_width_are_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(50, 4\); expected \[50, 3\]"):
        query(mlp(3, 4)(), POPULATION)
    with pytest.raises(InputError, match="int cannot be queried"):
        query(3, POPULATION)
    with pytest.raises(InputError, match="temperature"):
        QueryOptions(temperature=0.0)


class Wrapped(nn.Module):
    """A network with something around its answer."""

    def __init__(self, network: nn.Module, wrap: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.network, self.wrap = network, wrap

    def forward(self, x: torch.Tensor) -> Any:
        return self.wrap(self.network(x))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: {"loss": None, "logits": logits},
        lambda logits: (logits, logits.mean()),
        lambda logits: SimpleNamespace(logits=logits),
    ],
    ids=["dict", "tuple", "ModelOutput"],
)
def test_answers_in_a_dict_a_tuple_or_a_model_output_are_those_inside(wrap: Callable[[torch.Tensor], Any]) -> None:
    torch.manual_seed(0)
    network = mlp(3, 3)()
    expected = query(network, POPULATION)
    found = query(Wrapped(network, wrap), POPULATION)
    assert (found.loss == expected.loss).all()
    assert found.notes == ()
    assert (query(lambda x: wrap(network(torch.from_numpy(x))), POPULATION).loss == expected.loss).all()


@pytest.mark.parametrize("batch_size", [50, 7])
def test_a_module_that_ends_in_softmax_is_asked_for_probabilities(batch_size: int) -> None:
    torch.manual_seed(0)
    network = mlp(3, 3)()
    how = QueryOptions(batch_size=batch_size, keep_logits=True)
    expected, found = (query(model, POPULATION, how=how) for model in (network, nn.Sequential(network, nn.Softmax(1))))
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-5)
    assert (found.correct == expected.correct).all()
    assert found.notes == (
        "The model answers with probabilities (rows are not negative and sum to 1), so they are used as such, not as "
        "logits.",
    )
    assert expected.notes == ()
    assert query(nn.Sequential(network, nn.LogSoftmax(1)), POPULATION).notes == ()


def test_one_probability_per_record_is_told_from_one_logit() -> None:
    labels = (POPULATION.x[:, 0] > 0).astype(int)
    binary = Population(POPULATION.x, labels)
    logits = lambda x: 4 * x[:, :1]  # noqa: E731
    sigmoids = lambda x: 1 / (1 + np.exp(-4 * x[:, :1].astype(np.float64)))  # noqa: E731
    np.testing.assert_allclose(query(sigmoids, binary).loss, query(logits, binary).loss, rtol=1e-5)
    assert "one probability per record" in query(sigmoids, binary).notes[0]
    assert query(logits, binary).notes == ()
    weak = query(lambda x: np.full(len(x), np.log(0.7 / 0.3)), Population(POPULATION.x, np.arange(50) % 10 > 2))
    assert "used as logits. If they are probabilities" in weak.notes[0]


def test_all_batches_decide_what_a_model_answers_with() -> None:
    """Logits may happen to sum to 1 over the first records."""
    logits = RANDOM.normal(size=(50, 3))
    logits[:10] = (0.2, 0.3, 0.5)
    rows = Population(np.arange(50)[:, None], POPULATION.y)
    whole, parts = (query(lambda x: logits[x[:, 0]], rows, how=QueryOptions(batch_size=size)) for size in (50, 10))
    np.testing.assert_allclose(parts.loss, whole.loss)
    assert parts.notes == ()


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_class_numbers_are_refused(kind: type) -> None:
    with pytest.raises(InputError, match="answered with class numbers; an audit needs logits or probabilities"):
        query(lambda x: (x[:, 0] > 0).astype(kind), POPULATION)
    binary = Population(POPULATION.x, POPULATION.y > 0)
    with pytest.raises(InputError, match="exactly 0 or 1, which look like class numbers"):
        query(lambda x: (x[:, 0] > 0).astype(kind), binary)


def test_a_predict_proba_that_gives_no_probabilities_is_refused() -> None:
    model = LogisticRegression().fit(POPULATION.x, POPULATION.classes[POPULATION.y])
    model.predict_proba = model.decision_function
    with pytest.raises(InputError, match="predict_proba gave a row that holds -.* not negative and sum to 1"):
        query(model, POPULATION)
    model.predict_proba = lambda x: np.full((len(x), 3), 0.9)
    with pytest.raises(InputError, match="a row that sums to 2.7"):
        query(model, POPULATION)
    model.predict_proba = lambda x: np.full((len(x), 2), 0.5)
    with pytest.raises(InputError, match="one column per class"):
        query(model, POPULATION)


def test_a_forest_tells_its_step_and_a_network_has_none() -> None:
    forest = RandomForestClassifier(20, random_state=0).fit(POPULATION.x, POPULATION.classes[POPULATION.y])
    assert query(forest, POPULATION).resolution == pytest.approx(0.05)
    assert query(mlp(3, 3)(), POPULATION).resolution is None


def test_a_probability_of_zero_is_smaller_than_every_other() -> None:
    """Naive Bayes gives 1e-200 and, where the numbers end, 0."""
    exponents = np.array([-2.0, -200.0, -np.inf])
    small = 10.0**exponents
    model = GaussianNB().fit(POPULATION.x, POPULATION.y > 0)
    model.predict_proba = lambda x: np.stack([small, 1 - small], axis=1)
    loss = query(model, Population(POPULATION.x[:3], [False] * 3, classes=[False, True])).loss
    assert loss[0] < loss[1] < loss[2] < 1000


def test_numbers_between_0_and_1_that_are_no_probabilities_are_noted() -> None:
    population = Population(np.random.default_rng(0).random((50, 3)), np.arange(50) % 3)
    (note,) = query(lambda x: x, population).notes  # as one sigmoid per class gives
    assert note.startswith(
        "The model answers with numbers between 0 and 1 that do not sum to 1; they are used as logits"
    )
    assert query(lambda x: x - 0.5, population).notes == ()


@pytest.mark.parametrize("answers", [[20.0, 80.0], [33, 66], [3, 7]], ids=["percentages", "whole ones", "votes"])
def test_percentages_and_votes_are_not_taken_for_logits(answers: list[float]) -> None:
    """As logits, 80 and 20 would be a probability of 1 - 1e-26."""
    population = Population(np.zeros((10, 1)), np.arange(10) % 2)
    rows = np.array([answers, answers[::-1]] * 5)
    with pytest.raises(InputError, match="as percentages or votes do. Divide them by"):
        query(lambda x: rows[: len(x)], population)
    query(lambda x: (rows - rows.mean(axis=1, keepdims=True))[: len(x)], population)  # logits that sum to 0


def test_a_target_whose_answers_change_is_said() -> None:
    random = np.random.default_rng(0)
    population = Population(random.normal(size=(12, 2)), np.arange(12) % 2)
    assert check_model(lambda x: x, population) == ()
    for unsteady in (lambda x: x - x.mean(axis=0), lambda x: x + random.normal(size=x.shape)):
        (said,) = check_model(unsteady, population)
        assert said.startswith("The target's answer about a record changes with the other records of a query, or")


def test_weights_that_are_not_there_are_refused_with_the_fix() -> None:
    population = Population(np.zeros((2, 3), dtype=np.float32), [0, 1])
    with pytest.raises(InputError, match="weights are on the device 'meta'"):
        check_model(nn.Linear(3, 2, device="meta"), population)
    with pytest.raises(InputError, match=r"object cannot be queried.*such as lambda x: model.score_all_classes\(x\)"):
        check_model(object(), population)
