from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.data import complementary_halves
from glasshouse.training import CropAndFlip, EarlyStopping, mlp
from glasshouse.training.batches import say_once, split
from glasshouse.training.torch import probe_batching

RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(3, size=61)  # an odd number: complementary halves differ by one
POPULATION = Population((RANDOM.normal(size=(61, 5)) + Y[:, None]).astype(np.float32), Y)
IMAGES = Population(RANDOM.normal(size=(61, 2, 8, 8)).astype(np.float32), Y)
MEMBERS = complementary_halves(61, models=4, seed=0)
SEEDS = (3, 1, 4, 15)
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": functools.partial(torch.optim.Adam, lr=0.01, weight_decay=1e-4),
    "adamw": functools.partial(torch.optim.AdamW, lr=0.01),
    "sgd": functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "rmsprop": functools.partial(torch.optim.RMSprop, lr=0.01),
}


def cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))


def states(models: Iterable[nn.Module]) -> list[torch.Tensor]:
    return [tensor for model in models for tensor in model.state_dict().values()]


def one_at_a_time(trainer: TorchTrainer, population: Population) -> list[nn.Module]:
    return [trainer(population, who, seed) for who, seed in zip(MEMBERS, SEEDS, strict=True)]


def assert_same_as_one_at_a_time(trainer: TorchTrainer, population: Population = POPULATION) -> None:
    assert probe_batching(trainer, population).obstacle is None
    batched = trainer.train_many(population, MEMBERS, SEEDS)
    alone = one_at_a_time(trainer, population)
    assert not any(model.training for model in batched)
    for ours, theirs in zip(states(batched), states(alone), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    x = torch.from_numpy(population.x)
    for one, other in zip(batched, alone, strict=True):
        torch.testing.assert_close(one(x), other(x), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_batched_models_are_those_trained_one_at_a_time(optimizer: str) -> None:
    """Each with its own weights, members, order of records; 30 and 31 members in batches of 10."""
    trainer = TorchTrainer(
        module=mlp(5, 3, hidden=(7, 6)),
        optimizer=OPTIMIZERS[optimizer],
        scheduler=functools.partial(torch.optim.lr_scheduler.StepLR, step_size=2),
        epochs=5,
        batch_size=10,
        device="cpu",
    )
    assert_same_as_one_at_a_time(trainer)


@settings(max_examples=8)
@given(batch_size=st.integers(2, 40), hidden=st.integers(1, 9), outputs=st.integers(3, 20))
def test_they_are_the_same_for_every_size(batch_size: int, hidden: int, outputs: int) -> None:
    module = mlp(5, outputs, hidden=(hidden,))
    assert_same_as_one_at_a_time(TorchTrainer(module=module, epochs=2, batch_size=batch_size, device="cpu"))


def test_convolutions_and_augmentation_can_be_batched_too() -> None:
    trainer = TorchTrainer(
        module=cnn,
        epochs=3,
        batch_size=16,
        augmentation=CropAndFlip(padding=1),
        optimizer=OPTIMIZERS["sgd"],
        device="cpu",  # a GPU trains in bfloat16, whose rounding is far above 1e-4
    )
    assert_same_as_one_at_a_time(trainer, IMAGES)


def test_binary_models_with_one_logit_can_be_batched_too() -> None:
    binary = Population(POPULATION.x, POPULATION.y > 0)
    assert_same_as_one_at_a_time(TorchTrainer(module=mlp(5, 1), epochs=3, device="cpu"), binary)


def test_frozen_shared_and_constant_tensors_stay_as_they_are() -> None:
    class Odd(nn.Module):
        scale: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(5, 5), nn.Linear(5, 3)
            self.first.bias.requires_grad_(False)
            self.again = self.first
            self.register_buffer("scale", torch.rand(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(torch.relu(self.again(torch.relu(self.first(x)))) * self.scale)  # type: ignore[no-any-return]

    assert_same_as_one_at_a_time(TorchTrainer(module=Odd, epochs=3, batch_size=10, device="cpu"))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_same_seeds_same_bytes_and_the_users_stream_and_threads_stay(dropout: float) -> None:
    trainer = TorchTrainer(module=mlp(5, 3, dropout=dropout), epochs=3, batch_size=10, device="cpu")
    torch.manual_seed(7)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(7)
    first, again = (states(trainer.train_many(POPULATION, MEMBERS, SEEDS)) for _ in range(2))
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == threads
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], first[4])


def test_dropout_differs_between_models_of_a_batch() -> None:
    """One model three times: same weights, members and batches, and yet other weights in the end."""
    trainer = TorchTrainer(module=mlp(5, 3, dropout=0.5), epochs=2, device="cpu")
    one, two, _ = trainer.train_many(POPULATION, MEMBERS[[0, 0, 0]], [1, 1, 1])
    assert not torch.equal(states([one])[0], states([two])[0])


class _Clipping(torch.optim.SGD):
    pass


def _hooked(parameters: Any) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: None)
    return optimizer


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.last = nn.GRU(5, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.cell(x[:, None])[0][:, 0])  # type: ignore[no-any-return]


class _Deciding(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x if x.sum().item() > 0 else -x)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"early_stopping": EarlyStopping(patience=2)}, "early stopping"),
        ({"optimizer": torch.optim.Adafactor}, "Adafactor mixes entries"),
        ({"optimizer": functools.partial(_Clipping, lr=0.1)}, "_Clipping is a subclass"),
        ({"optimizer": _hooked}, "has hooks"),
        ({"module": lambda: nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))}, "BatchNorm1d, which keeps running"),
        ({"module": _Recurrent}, r"recurrent layer \(GRU\)"),
        ({"module": lambda: _Deciding(5, 3)}, "torch.func cannot batch the module"),
    ],
)
def test_what_cannot_be_batched_is_trained_one_at_a_time_and_logged(
    options: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = TorchTrainer(**{"module": mlp(5, 3), "epochs": 2, "device": "cpu", **options})
    say_once.cache_clear()
    with caplog.at_level(logging.INFO, logger="glasshouse"):
        batched = trainer.train_many(POPULATION, MEMBERS, SEEDS)
        trainer.train_many(POPULATION, MEMBERS, SEEDS)
    (record,) = caplog.records  # once
    assert record.message.startswith("Models are trained one at a time: ")
    assert re.search(reason, record.message)
    alone = one_at_a_time(trainer, POPULATION)
    assert all(torch.equal(a, b) for a, b in zip(states(batched), states(alone), strict=True))


def test_a_batch_that_would_not_fit_in_memory_is_split() -> None:
    assert [len(group) for group in split([9] * 5, bytes_each=2**28, device=torch.device("cuda"), together=4)] == [4, 1]
    assert split([9] * 3, bytes_each=2**40, device=torch.device("cpu"), together=4) == [[0], [1], [2]]


def test_members_and_seeds_must_fit() -> None:
    with pytest.raises(InputError, match=r"members: shape \(4, 61\)"):
        TorchTrainer(module=mlp(5, 3)).train_many(POPULATION, MEMBERS, [1, 2])


def test_no_models_are_no_trouble() -> None:
    assert TorchTrainer(module=mlp(5, 3)).train_many(POPULATION, MEMBERS[:0], []) == []


def test_smoothed_labels_are_the_same_in_a_batch() -> None:
    assert_same_as_one_at_a_time(TorchTrainer(module=mlp(5, 3), epochs=4, batch_size=16, label_smoothing=0.3))
