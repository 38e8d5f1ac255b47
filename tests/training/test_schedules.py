from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.training import OneCycle, mlp

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(40, 5)).astype(np.float32), np.arange(40) % 2)
MEMBERS = np.arange(40) < 20


@pytest.mark.parametrize("epochs", [2, 7])
def test_the_rate_goes_up_and_down_once_whatever_the_number_of_epochs(epochs: int) -> None:
    rates: list[float] = []

    class Watched(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            rates.append(self.param_groups[0]["lr"])
            super().step(closure)

    trainer = TorchTrainer(
        module=mlp(5, 2),
        optimizer=functools.partial(Watched, lr=0.5),
        schedule=OneCycle(warmup=0.5),
        epochs=epochs,
        batch_size=5,
    )
    trainer(POPULATION, MEMBERS, 0)
    steps = 4 * epochs
    assert rates == pytest.approx([0.5 * OneCycle(warmup=0.5)(step / steps) for step in range(steps)])
    assert int(np.argmax(rates)) == steps // 2


def test_batched_models_follow_the_schedule_too() -> None:
    trainer = TorchTrainer(
        module=mlp(5, 2),
        optimizer=functools.partial(torch.optim.SGD, lr=0.5, momentum=0.9, nesterov=True),
        schedule=OneCycle(),
        epochs=5,
        batch_size=5,
    )
    masks = np.stack([MEMBERS, ~MEMBERS])
    batched = trainer.train_many(POPULATION, masks, [0, 1])
    for model, who, seed in zip(batched, masks, (0, 1), strict=True):
        single = trainer(POPULATION, who, seed)
        for one, other in zip(model.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_warmup_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="warmup: 1.0"):
        OneCycle(warmup=1.0)
