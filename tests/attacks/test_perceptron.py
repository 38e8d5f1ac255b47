from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from glasshouse.attacks.perceptron import train_perceptron


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
    found = train_perceptron(x, labels, hidden=hidden, epochs=epochs, batch=batch, seed=7)
    np.testing.assert_allclose(found.probabilities(x), twin.predict_proba(x)[:, 1], rtol=1e-12)
    for mine, theirs in zip([*found.weights, *found.biases], [*twin.coefs_, *twin.intercepts_], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
