from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from torch import nn

from glasshouse import InputError, Population, Query
from glasshouse.evidence import accuracy, query
from glasshouse.training import mlp

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(50, 3)).astype(np.float32), RANDOM.choice(["a", "b", "c"], size=50))


def test_batches_do_not_change_the_losses() -> None:
    torch.manual_seed(0)
    model = mlp(3, 3)()
    whole, parts = (query(model, POPULATION, how=Query(batch_size=size)).loss for size in (50, 7))
    np.testing.assert_allclose(whole, parts, rtol=1e-6)


def test_losses_are_those_of_torch_in_double_precision() -> None:
    torch.manual_seed(0)
    model = mlp(3, 3)()
    with torch.no_grad():
        expected = nn.functional.cross_entropy(
            model(torch.from_numpy(POPULATION.x)).double() / 2, torch.from_numpy(POPULATION.y), reduction="none"
        )
    found = query(model, POPULATION, how=Query(temperature=2.0, keep_logits=True))
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
    with pytest.raises(InputError, match="int cannot be asked"):
        query(3, POPULATION)
    with pytest.raises(InputError, match="temperature"):
        Query(temperature=0.0)
