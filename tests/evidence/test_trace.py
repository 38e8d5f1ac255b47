from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from torch import nn

from glasshouse import InputError, LossTrace, Population, TorchTrainer, mlp
from glasshouse.evidence.trace import loss_falls, traced_losses
from glasshouse.query.classify import query


def people(records: int = 60) -> Population:
    random = np.random.default_rng(0)
    x = random.normal(size=(records, 4)).astype(np.float32)
    return Population(x, np.where(x[:, 0] + 0.5 * random.normal(size=records) > 0, "yes", "no"))


def test_a_traced_training_gives_the_same_model_to_the_last_bit() -> None:
    population, members = people(), np.arange(60) < 30
    trainer = TorchTrainer(module=mlp(4, 2, hidden=(8,), dropout=0.5), epochs=4, batch_size=8, device="cpu")
    trace = LossTrace(population)
    traced, plain = trainer(population, members, 3, after_epoch=trace.record), trainer(population, members, 3)
    for first, second in zip(traced.parameters(), plain.parameters(), strict=True):
        assert torch.equal(first, second)
    assert trace.losses.shape == (4, 60)
    np.testing.assert_array_equal(trace.losses[-1], query(plain, population).loss)


def test_a_plain_loop_goes_on_in_training_mode() -> None:
    model, trace = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)), LossTrace(people())
    modes = []
    for mode in (True, False):
        model.train(mode)
        trace.record(model)
        modes.append(model.training)
    assert modes == [True, False]
    assert len(trace) == 2


def test_partial_fit_is_traced_by_hand_and_boosting_by_its_stages() -> None:
    population = people()
    labels = population.classes[population.y]
    by_hand = LossTrace(population)
    model = SGDClassifier(loss="log_loss", random_state=0)
    for _ in range(3):
        model.partial_fit(population.x, labels, classes=["no", "yes"])
        by_hand.record(model)
    assert by_hand.losses.shape == (3, 60)
    boosted = GradientBoostingClassifier(n_estimators=40, random_state=0).fit(population.x, labels)
    stages = LossTrace(population)
    stages.record_stages(boosted)
    assert stages.losses.shape == (32, 60)
    np.testing.assert_allclose(stages.losses[-1], query(boosted, population).loss)
    assert (stages.losses[0].mean() > stages.losses[-1].mean()).all()


def test_stages_are_cut_into_batches_as_other_queries() -> None:
    population = people(1500)
    boosted = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(
        population.x, population.classes[population.y]
    )
    trace = LossTrace(population)
    trace.record_stages(boosted)
    np.testing.assert_allclose(trace.losses[-1], query(boosted, population).loss)


def test_falls_and_ranges_are_what_their_names_say() -> None:
    rows = np.random.default_rng(0).exponential(size=(8, 5))
    by_hand = [np.mean([rows[0, n], rows[1, n]]) - np.mean([rows[6, n], rows[7, n]]) for n in range(5)]
    np.testing.assert_allclose(loss_falls(rows), by_hand)
    trace = LossTrace(people())
    trace._rows = list(rows)
    np.testing.assert_allclose(trace.ranges(), [np.subtract(*np.quantile(rows[:, n], [0.75, 0.25])) for n in range(5)])


def test_a_model_without_stages_an_empty_trace_and_other_records_are_refused() -> None:
    population = people()
    with pytest.raises(InputError, match="no staged_predict_proba"):
        LossTrace(population).record_stages(LogisticRegression())
    with pytest.raises(InputError, match="0 moments were recorded"):
        _ = LossTrace(population).losses
    with pytest.raises(InputError, match=r"shape \(2, 60\) does not fit 61 records"):
        traced_losses(np.ones((2, 60)), 61)
    with pytest.raises(InputError, match="trace: NaN or infinite for 60 of 60 records: '0', '1'"):
        traced_losses(np.full((2, 60), np.nan), 60)
    with pytest.raises(InputError, match="trace: it holds losses that are negative"):
        traced_losses(np.full((2, 60), -1.0), 60)
    assert traced_losses(None, 60) is None
