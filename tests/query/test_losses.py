"""Ready-made losses against distributions of scipy and against sums written out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse import (
    CoxLoss,
    DiscreteSurvivalLoss,
    GaussianLoss,
    InputError,
    MultiLabelLoss,
    MultiOutputLoss,
    PoissonLoss,
    Population,
    QuantileLoss,
)
from glasshouse.query.losses import Batch, OwnLoss


def asked(loss: Any, answer: Any, y: Any) -> np.ndarray:
    y = np.asarray(y)
    return np.asarray(loss(lambda x: answer, Batch(np.zeros((len(y), 1)), y, np.arange(len(y)).astype(str))))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), logits=st.booleans())
def test_labels_are_bernoulli(seed: int, logits: bool) -> None:
    random = np.random.default_rng(seed)
    z, y = random.normal(scale=3, size=(5, 3)), random.integers(2, size=(5, 3))
    z[0, 0] = 2.0  # outside of 0 to 1, which would be probabilities
    chance = 1 / (1 + np.exp(-z))
    found = asked(MultiLabelLoss(), z if logits else chance, y)
    assert np.allclose(found, -scipy.stats.bernoulli.logpmf(y, chance))
    listed = [np.stack([1 - one, one], axis=1) for one in chance.T]  # as scikit-learn answers
    assert np.allclose(asked(MultiLabelLoss(), listed, y), found)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_outputs_counts_and_errors(seed: int) -> None:
    random = np.random.default_rng(seed)
    chances = [random.dirichlet(np.ones(classes), size=4) for classes in (2, 4)]
    y = np.stack([random.integers(2, size=4), random.integers(4, size=4)], axis=1)
    by_hand = [[-np.log(chances[part][row, y[row, part]]) for part in (0, 1)] for row in range(4)]
    assert np.allclose(asked(MultiOutputLoss(), chances, y), by_hand)
    assert np.allclose(asked(MultiOutputLoss(), [5 + np.log(one) for one in chances], y), by_hand)  # logits
    mean, counts = random.uniform(0.1, 9, size=4), random.integers(9, size=4)
    assert np.allclose(asked(PoissonLoss(), mean, counts), -scipy.stats.poisson.logpmf(counts, mean))
    values, truth, scale = random.normal(size=(4, 2)), random.normal(size=(4, 2)), np.array([0.5, 2.0])
    density = -scipy.stats.norm.logpdf(truth, values, scale) - np.log(scale * np.sqrt(2 * np.pi))
    assert np.allclose(asked(GaussianLoss(scale=scale.tolist()), values, truth), density)
    by_hand = [[(q if t > v else q - 1) * (t - v) for q, v in zip((0.2, 0.7), pair, strict=True)]
               for t, pair in zip(truth[:, 0], values, strict=True)]  # fmt: skip
    found = asked(QuantileLoss(quantiles=[0.2, 0.7], scale=2.0), values, truth[:, 0])
    assert np.allclose(found, np.array(by_hand) / 2)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_survival(seed: int) -> None:
    random = np.random.default_rng(seed)
    time, event = random.integers(1, 5, size=8).astype(float), random.integers(2, size=8)
    risk = random.normal(size=8)
    # the sum over records is minus the partial likelihood, plus the number of events: Breslow's hazard sums to it
    terms = [risk[i] - np.log(np.exp(risk[time >= time[i]]).sum()) for i in range(8) if event[i]]
    found = asked(CoxLoss(), risk, np.stack([time, event], axis=1))
    assert np.isclose(found.sum(), -sum(terms) + event.sum())
    hazards = [sum(1 / np.exp(risk[time >= time[j]]).sum() for j in range(8) if event[j] and time[j] <= time[i])
               for i in range(8)]  # fmt: skip
    own = [risk[i] - np.log(np.exp(risk[time >= time[i]]).sum()) if event[i] else 0.0 for i in range(8)]
    assert np.allclose(found, np.exp(risk) * hazards - own)
    structured = np.array(list(zip(event.astype(bool), time, strict=True)), dtype=[("died", "?"), ("days", "f8")])
    assert np.allclose(asked(CoxLoss(), risk, structured), found)
    chance = random.uniform(0.1, 0.9, size=(8, 5))
    found = asked(DiscreteSurvivalLoss(), chance, np.stack([time, event], axis=1))
    for i in range(8):
        last = int(time[i])
        by_hand = [-np.log(1 - chance[i, t]) for t in range(last)]
        by_hand.append(-np.log(chance[i, last] if event[i] else 1 - chance[i, last]))
        assert np.allclose(found[i, : last + 1], by_hand)
        assert np.isnan(found[i, last + 1 :]).all()


@pytest.mark.parametrize(
    ("loss", "answer", "y", "told"),
    [
        (MultiLabelLoss(), np.ones((2, 3)), [[0, 1], [1, 1]], r"shape \(2, 3\); expected one number per label"),
        (MultiLabelLoss(), [np.ones((2, 1)), np.ones((2, 2))], [[0, 1], [1, 1]], "only one value among the members"),
        (MultiOutputLoss(), [np.ones((2, 2))], [[0, 1], [1, 1]], "about 1 outputs, and there are 2"),
        (CoxLoss(), np.ones(2), [[1.0, 3.0], [1.0, 0.0]], "the time, and 1 for an event or 0"),
        (DiscreteSurvivalLoss(), np.ones((2, 2)), [[5, 1], [1, 0]], "a column for each interval"),
    ],
)
def test_what_does_not_fit_is_refused(loss: Any, answer: Any, y: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        asked(loss, answer, y)


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="quantiles: give levels between 0 and 1"):
        QuantileLoss(quantiles=[1.5])
    with pytest.raises(InputError, match=r"scale: -1.0 is not positive"):
        asked(GaussianLoss(scale=-1.0), np.ones((2, 1)), np.ones((2, 1)))


def test_a_few_logits_between_0_and_1_are_still_logits() -> None:
    population = Population.for_loss(np.arange(5.0)[:, None], np.ones((5, 1), dtype=int))
    answers = np.array([-3.0, 2.0, 4.0, -1.0, 0.5])  # the last one is a batch of its own
    found = OwnLoss(loss=MultiLabelLoss(), batch_size=4).answers(lambda x: answers[x.astype(int)], population)
    assert np.allclose(found.loss, np.log1p(np.exp(-answers)))
    known = OwnLoss(loss=MultiLabelLoss(probabilities=False)).answers(lambda x: 0 * x + 0.5, population)
    assert np.allclose(known.loss, np.log1p(np.exp(-0.5)))
