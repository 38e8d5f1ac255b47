from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.evidence import query
from glasshouse.training import EarlyStopping, mlp

RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(3, size=120)
POPULATION = Population((RANDOM.normal(size=(120, 5)) + 2 * Y[:, None]).astype(np.float32), Y)
MEMBERS = np.arange(120) < 60


def test_early_stopping_keeps_the_best_weights_and_stops_before_the_end() -> None:
    steps: list[int] = []

    class Counting(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            steps.append(1)
            super().step(closure)

    noise = Population(POPULATION.x, np.random.default_rng(1).integers(3, size=120))  # nothing to learn but by heart
    common: dict[str, Any] = {"module": mlp(5, 3), "epochs": 400, "batch_size": 60}
    common["optimizer"] = functools.partial(Counting, lr=1.0)
    stopped = TorchTrainer(early_stopping=EarlyStopping(patience=5), **common)(noise, MEMBERS, 0)
    taken = len(steps)
    full = TorchTrainer(**common)(noise, MEMBERS, 0)
    assert taken < 400 <= len(steps) - taken
    assert query(stopped, noise).loss[~MEMBERS].mean() < query(full, noise).loss[~MEMBERS].mean()


def test_early_stopping_needs_records_outside() -> None:
    trainer = TorchTrainer(module=mlp(5, 3), epochs=1, early_stopping=EarlyStopping())
    with pytest.raises(InputError, match="every record is a member"):
        trainer(POPULATION, np.ones(120, dtype=bool), 0)
