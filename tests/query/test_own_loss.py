"""A loss of the user's own: what is refused, and whole audits with a known leak and with none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import roc_auc_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier

from glasshouse import (
    Attacker,
    CoxLoss,
    InputError,
    LabelOnly,
    MultiLabelLoss,
    MultiOutputLoss,
    Population,
    QuantileLoss,
    SklearnTrainer,
    TorchTrainer,
    audit,
)
from glasshouse.query.own_loss import OwnLoss


def area(result: Any, name: str) -> float:
    return float(result.outcomes[name].metrics.auc)


def two_labels(records: int = 240) -> tuple[Population, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(records, 4))
    y = (x[:, :2] + random.normal(size=(records, 2)) > 0).astype(int)
    return Population.for_loss(x, y), np.arange(records) < records // 2


def constant(value: Any) -> Any:
    return lambda model, batch: np.full(len(batch.ids), value)


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (constant(np.nan), "NaN or infinite"),
        (constant(np.inf), "NaN or infinite"),
        (constant(-1.0), "negative for 8 of 8 records, first '0'. It is the negative logarithm"),
        (lambda model, batch: np.zeros((2, 2, 2)), "expected one number per record"),
        (lambda model, batch: np.full((len(batch.ids), 2), np.nan), "NaN or infinite"),
        (lambda model, batch: 1 / 0, "loss: the function failed: ZeroDivisionError: division by zero"),
        ("cross-entropy", "give a function"),
    ],
)
def test_a_wrong_loss_is_refused_before_any_training(loss: Any, told: str) -> None:
    population, members = two_labels()

    def never(population: Any, members: Any, seed: int) -> Any:
        raise AssertionError("trained")

    with pytest.raises(InputError, match=told):
        audit(population, model=lambda x: x, members=members, trainer=never, loss=loss)


def test_an_unsteady_loss_is_told() -> None:
    population, _ = two_labels()
    relative = OwnLoss(loss=lambda model, batch: np.arange(float(len(batch.ids))) / len(batch.ids))
    assert "changes with the other records" in relative.check(None, population)[0]
    assert OwnLoss(loss=constant(1.0)).check(None, population) == ()


def test_densities_may_be_negative() -> None:
    population, members = two_labels()
    loss = constant(-1.0)
    loss.density = True
    trained = audit(population, members=members, trainer=lambda *_: lambda x: x, loss=loss, attacks=["base"])
    assert trained.evidence.target_loss.min() == 0  # measured from the smallest of all models


def test_populations_and_questions_must_fit() -> None:
    population, members = two_labels()
    trainer = SklearnTrainer(estimator=RandomForestClassifier(n_estimators=3))
    with pytest.raises(InputError, match=r"made by Population\.for_loss, and no loss was given"):
        audit(population, members=members, trainer=trainer, shadows=4)
    with pytest.raises(InputError, match="LabelOnly asks for something else"):
        audit(population, members=members, trainer=trainer, loss=MultiLabelLoss(), attacker=Attacker(query=LabelOnly()))
    with pytest.raises(InputError, match="a regression has its own likelihood"):
        real = Population(np.ones((4, 1)), [0.1, 0.2, 0.3, 0.4], regression=True)
        audit(real, members=[1, 1, 0, 0], trainer=trainer, loss=MultiLabelLoss())
    with pytest.raises(InputError, match="one row per record"):
        Population.for_loss(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(InputError, match="cannot attack a loss of your own"):
        audit(population, members=members, trainer=trainer, loss=MultiLabelLoss(), attacks=["class-loss"], shadows=4)
    parts, inside = Population.from_parts(population, Population.for_loss(population.x + 1, population.y))
    assert parts.own_loss
    assert inside.sum() == len(population) == len(parts) / 2
    assert parts.fingerprint() != population.fingerprint()


def by_hand(result: Any, losses: np.ndarray) -> None:
    """The evidence is what the loss says, and the strongest attack finds no less than the loss alone."""
    assert np.allclose(result.evidence.target_loss, losses)
    strongest = max(outcome.metrics.auc for outcome in result.outcomes.values())
    assert strongest > roc_auc_score(result.members, -losses) - 0.02


def test_a_leak_of_several_labels_is_found_and_none_where_there_is_none() -> None:
    population, members = two_labels()
    trainer = SklearnTrainer(estimator=RandomForestClassifier(n_estimators=10, random_state=0))
    model = trainer(population, members, seed=1)
    result = audit(population, model=model, members=members, trainer=trainer, loss=MultiLabelLoss(), shadows=4)
    chance = np.stack([one[:, 1] for one in model.predict_proba(population.x)], axis=1)
    likelihood = np.maximum(np.where(population.y == 1, chance, 1 - chance), 1e-12)
    by_hand(result, -np.log(likelihood).sum(axis=1))
    assert result.table()["auc"].min() > 0.6
    none = RandomForestClassifier(n_estimators=10, max_depth=1, random_state=0)
    kept = audit(population, members=members, trainer=SklearnTrainer(estimator=none), loss=MultiLabelLoss(), shadows=4)
    assert abs(area(kept, "base") - 0.5) < 0.1


def test_other_kinds_of_model_end_to_end() -> None:
    population, members = two_labels(120)
    random = np.random.default_rng(1)
    # several classes, in a list of outputs
    classes = Population.for_loss(population.x, random.integers(3, size=(120, 2)))
    nearest = SklearnTrainer(estimator=MultiOutputClassifier(KNeighborsClassifier(1)))
    found = audit(classes, members=members, trainer=nearest, loss=MultiOutputLoss(), shadows=4, attacks=["base"])
    assert area(found, "base") > 0.8
    # one quantile, which a line hardly remembers
    real = Population.for_loss(population.x, population.x[:, 0] + random.normal(size=120))
    line = SklearnTrainer(estimator=QuantileRegressor(quantile=0.9, alpha=0))
    weak = audit(real, members=members, trainer=line, loss=QuantileLoss(quantiles=[0.9]), shadows=4, attacks=["base"])
    assert abs(area(weak, "base") - 0.5) < 0.2
    # survival, by a network that overfits
    time = random.exponential(np.exp(-population.x[:, 0]))
    lives = Population.for_loss(population.x.astype(np.float32), np.stack([time, random.random(120) < 0.8], axis=1))

    def partial(answer: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        answer, order = answer.reshape(-1), y[:, 0].argsort(descending=True)
        return -((answer[order] - answer[order].logcumsumexp(0)) * y[order, 1])

    network = TorchTrainer(
        module=lambda: torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)),
        loss=partial, epochs=120, optimizer=lambda weights: torch.optim.Adam(weights, lr=0.01),
    )  # fmt: skip
    leak = audit(lives, members=members, trainer=network, loss=CoxLoss(), shadows=4, attacks=["base"])
    assert area(leak, "base") > 0.6


def test_a_pool_keeps_the_parts(tmp_path: Any) -> None:
    population, members = two_labels(80)
    trainer = SklearnTrainer(estimator=RandomForestClassifier(n_estimators=5))

    def run() -> Any:
        how = {"loss": MultiLabelLoss(), "shadows": 4, "attacks": ["base-parts"], "pool": tmp_path / "pool"}
        return audit(population, members=members, trainer=trainer, **how)

    first, again = run(), run()
    assert np.array_equal(first.outcomes["base-parts"].scores, again.outcomes["base-parts"].scores)
    assert first.evidence.parts is not None
    assert first.evidence.parts.shadow.shape == (4, 160)
