"""A loss of the user's own: what is refused, and whole audits with a known leak and with none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from glasshouse import (
    Attacker,
    CoxLoss,
    DiscreteSurvivalLoss,
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
from glasshouse.query.losses import OwnLoss


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
    with pytest.raises(InputError, match="3 records but 2 outcomes; give one per record"):
        Population.for_loss(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(InputError, match="cannot attack a loss of your own"):
        audit(population, members=members, trainer=trainer, loss=MultiLabelLoss(), attacks=["class-loss"], shadows=4)
    parts, inside = Population.from_parts(population, Population.for_loss(population.x + 1, population.y))
    assert parts.own_loss
    assert inside.sum() == len(population) == len(parts) / 2
    assert parts.fingerprint() != population.fingerprint()


Ask = Callable[[Any], Any]


def nearest(population: Population, members: np.ndarray, answer: Callable[[np.ndarray], Any]) -> Ask:
    """A model that answers what it saw for the nearest member, which for a member is the member itself."""
    found, y = NearestNeighbors(n_neighbors=1).fit(population.x[members]), population.y[members]
    return lambda x: answer(y[found.kneighbors(x, return_distance=False)[:, 0]])


def of_labels(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return (x[:, :2] + random.normal(size=(len(x), 2)) > 0).astype(int)


def of_outputs(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.stack([random.integers(2, size=len(x)), random.integers(3, size=len(x))], axis=1)


def of_numbers(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.asarray(x[:, 0] + random.normal(size=len(x)))


def of_lives(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.stack([random.exponential(np.exp(-x[:, 0])), random.random(len(x)) < 0.8], axis=1)


def of_intervals(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.stack([random.integers(4, size=len(x)), random.integers(2, size=len(x))], axis=1)


def labels(seen: np.ndarray) -> np.ndarray:
    return np.asarray(0.2 + 0.6 * seen)


def outputs(seen: np.ndarray) -> list[np.ndarray]:
    return [0.1 + (1 - 0.1 * classes) * np.eye(classes)[seen[:, at]] for at, classes in enumerate((2, 3))]


def quantiles(seen: np.ndarray) -> np.ndarray:
    return np.stack([seen - 0.5, seen + 0.5], axis=1)


def risk(seen: np.ndarray) -> np.ndarray:
    return np.asarray(-np.log(seen[:, 0]))


def hazards(seen: np.ndarray) -> np.ndarray:
    there = (np.arange(4) == seen[:, :1]) & (seen[:, 1:] == 1)
    return np.where(there, 0.8, 0.1)


def losses_of_labels(answer: np.ndarray, y: np.ndarray) -> list[float]:
    pairs = [zip(*pair, strict=True) for pair in zip(answer, y, strict=True)]
    return [-sum(np.log(p if label else 1 - p) for p, label in pair) for pair in pairs]


def losses_of_outputs(answer: list[np.ndarray], y: np.ndarray) -> list[float]:
    return [-np.log(answer[0][row, first]) - np.log(answer[1][row, second]) for row, (first, second) in enumerate(y)]


def losses_of_quantiles(answer: np.ndarray, y: np.ndarray) -> list[float]:
    each = [[(0.1, low), (0.9, high)] for low, high in answer]
    return [sum(max(q * (t - v), (q - 1) * (t - v)) for q, v in pair) for pair, t in zip(each, y, strict=True)]


def losses_of_lives(answer: np.ndarray, y: np.ndarray) -> list[float]:
    """Cox's partial likelihood, from every event before a record and all who were at risk at it."""
    (time, event), found = y.T, []
    for own, happened, log_risk in zip(time, event, answer, strict=True):
        before = [np.exp(log_risk) / np.exp(answer[time >= t]).sum() for t in time[(event == 1) & (time <= own)]]
        found.append(sum(before) - happened * (log_risk - np.log(np.exp(answer[time >= own]).sum())))
    return found


def losses_of_intervals(answer: np.ndarray, y: np.ndarray) -> list[float]:
    found = []
    for chance, (last, event) in zip(answer, y, strict=True):
        survived = np.prod(1 - chance[:last])
        found.append(-np.log(survived * (chance[last] if event else 1 - chance[last])))
    return found


@pytest.mark.parametrize(
    ("drawn", "answer", "loss", "by_hand"),
    [
        (of_labels, labels, MultiLabelLoss(), losses_of_labels),
        (of_outputs, outputs, MultiOutputLoss(), losses_of_outputs),
        (of_numbers, quantiles, QuantileLoss(quantiles=[0.1, 0.9]), losses_of_quantiles),
        (of_lives, risk, CoxLoss(), losses_of_lives),
        (of_intervals, hazards, DiscreteSurvivalLoss(), losses_of_intervals),
    ],
)
def test_every_kind_of_model_end_to_end(drawn: Any, answer: Any, loss: Any, by_hand: Any) -> None:
    """A target that knows its members is found out, and one that was trained on other records is not.

    The losses are those written out by hand, and no attack with shadow models is weaker than their threshold.
    """
    random = np.random.default_rng(3)
    x, others = random.normal(size=(2, 240, 3))
    population, elsewhere = (Population.for_loss(one, drawn(one, random)) for one in (x, others))
    members = random.permutation(240) < 120
    for known, mask in ((population, members), (elsewhere, np.ones(240, dtype=bool))):
        model = nearest(known, mask, answer)
        result = audit(
            population, model=model, members=members, loss=loss, shadows=4, attacks=["loss", "base", "lira"],
            trainer=lambda people, inside, seed: nearest(people, inside, answer), progress=False,
        )  # fmt: skip
        losses = np.array(by_hand(model(x), population.y))
        np.testing.assert_allclose(result.evidence.target_loss, losses, rtol=1e-6, atol=1e-9)
        threshold = roc_auc_score(members, -losses)
        assert area(result, "loss") == pytest.approx(threshold, abs=0.005)  # rounding may part ties
        if known is population:
            assert threshold > 0.65
            assert max(area(result, "base"), area(result, "lira")) > threshold - 0.02
        else:
            assert max(abs(area(result, name) - 0.5) for name in ("loss", "base", "lira")) < 0.12


def test_a_network_that_was_trained_by_the_partial_likelihood() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(120, 4))
    lives = Population.for_loss(x.astype(np.float32), of_lives(x, random))

    def partial(answer: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        answer, order = answer.reshape(-1), y[:, 0].argsort(descending=True)
        return -((answer[order] - answer[order].logcumsumexp(0)) * y[order, 1])

    network = TorchTrainer(
        module=lambda: torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)),
        loss=partial, epochs=40, optimizer=lambda weights: torch.optim.Adam(weights, lr=0.02),
    )  # fmt: skip
    members = np.arange(120) < 60
    leak = audit(lives, members=members, trainer=network, loss=CoxLoss(), shadows=4, attacks=["base"], progress=False)
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
