from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from glasshouse.attacks.perceptron import train_perceptrons


@pytest.mark.parametrize(
    ("records", "hidden", "epochs", "batch"),
    [
        (700, (16,), 5, 256),  # the last batch is smaller
        (200, (8, 5), 20, 32),  # several hidden layers
        (90, (3,), 300, 90),  # ends early, since the loss does not fall any more
        (40, (), 3, 40),  # logistic regression
    ],
)
def test_it_is_the_network_of_scikit_learn(records: int, hidden: tuple[int, ...], epochs: int, batch: int) -> None:
    random = np.random.default_rng(records)
    x = random.normal(size=(records, 4))
    labels = random.random(records) < 1 / (1 + np.exp(-x[:, 0] + x[:, 1] * x[:, 2]))
    twin = MLPClassifier(hidden, batch_size=batch, max_iter=epochs, random_state=7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        twin.fit(x, labels)
    (found,) = train_perceptrons([(x, labels)], hidden=hidden, epochs=epochs, batch=batch, seed=7)
    np.testing.assert_allclose(found.probabilities(x), twin.predict_proba(x)[:, 1], rtol=1e-12)
    for mine, theirs in zip([*found.weights, *found.biases], [*twin.coefs_, *twin.intercepts_], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@given(st.integers(1, 5), st.integers(2, 60), st.integers(1, 3), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_networks_trained_at_once_are_those_trained_alone(count: int, records: int, features: int, seed: int) -> None:
    """Also where some of them end early and the others go on."""
    random = np.random.default_rng(seed)
    labels = [random.random(records) < 0.5 for _ in range(count)]
    # the first one's labels can be learned, so that it goes on longer
    examples = [
        (random.normal(size=(records, features)) + 3 * (number == 0) * label[:, None], label)
        for number, label in enumerate(labels)
    ]
    options: dict[str, Any] = {"hidden": (4,), "epochs": 120, "batch": min(16, records), "seed": seed}
    together = train_perceptrons(examples, **options)
    for one, example in zip(together, examples, strict=True):
        (alone,) = train_perceptrons([example], **options)
        for mine, theirs in zip([*one.weights, *one.biases], [*alone.weights, *alone.biases], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
