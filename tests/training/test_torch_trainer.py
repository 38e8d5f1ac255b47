from __future__ import annotations

import functools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.evidence import accuracy, query
from glasshouse.training import CropAndFlip, EarlyStopping, mlp
from glasshouse.training.batches import mean_loss, say_once

RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(3, size=120)
POPULATION = Population((RANDOM.normal(size=(120, 5)) + 2 * Y[:, None]).astype(np.float32), Y)
MEMBERS = np.arange(120) < 60


def weights(model: nn.Module) -> list[np.ndarray]:
    return [parameter.detach().numpy() for parameter in model.parameters()]


def test_same_seed_same_bytes_and_another_seed_another_model() -> None:
    trainer = TorchTrainer(module=mlp(5, 3, dropout=0.2), epochs=3)
    first, again, other = (weights(trainer(POPULATION, MEMBERS, seed)) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))


def test_training_leaves_the_users_random_stream_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    TorchTrainer(module=mlp(5, 3), epochs=1)(POPULATION, MEMBERS, 0)
    assert torch.rand(1) == expected


def test_it_learns_the_members_and_only_the_members() -> None:
    """Labels of non-members are replaced by nonsense; the trained weights do not change."""
    trainer = TorchTrainer(module=mlp(5, 3, hidden=(64,)), epochs=150, batch_size=16)
    model = trainer(POPULATION, MEMBERS, 0)
    assert accuracy(query(model, POPULATION), MEMBERS) > 0.95
    scrambled = Population(POPULATION.x, np.where(MEMBERS, POPULATION.y, (POPULATION.y + 1) % 3))
    assert all((a == b).all() for a, b in zip(weights(model), weights(trainer(scrambled, MEMBERS, 0)), strict=True))


@pytest.mark.parametrize("shape", [(-1, 1), (-1,)])
def test_binary_models_with_one_logit_work(shape: tuple[int, ...]) -> None:
    binary = Population(POPULATION.x, POPULATION.y > 0)

    class OneLogit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(5, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x).reshape(shape)  # type: ignore[no-any-return]

    fast = functools.partial(torch.optim.Adam, lr=0.05)
    model = TorchTrainer(module=OneLogit, optimizer=fast, epochs=60, batch_size=16)(binary, MEMBERS, 0)
    assert accuracy(query(model, binary), MEMBERS) > 0.95


def test_a_schedule_and_an_augmentation_are_used_in_training_alone() -> None:
    images = Population(RANDOM.normal(size=(40, 1, 8, 8)).astype(np.float32), np.arange(40) % 2)
    calls: list[torch.Size] = []

    def watched(batch: torch.Tensor, random: torch.Generator) -> torch.Tensor:
        calls.append(batch.shape)
        return CropAndFlip(padding=1)(batch, random)

    trainer = TorchTrainer(
        module=mlp(64, 2),
        epochs=2,
        batch_size=10,
        augmentation=watched,
        scheduler=functools.partial(torch.optim.lr_scheduler.StepLR, step_size=1),
    )
    model = trainer(images, np.arange(40) < 20, 0)
    query(model, images)
    assert len(calls) == 4


def test_a_compiled_module_learns_the_same_and_its_code_is_kept_in_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced but not translated, which would take a C++ compiler and half a minute."""
    traced, places = torch.compile, []

    def compiled(module: nn.Module) -> Any:
        places.append(os.environ.get("TORCHINDUCTOR_CACHE_DIR"))  # by itself, torch would use a folder in /tmp
        return traced(module, backend="eager")

    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plain = TorchTrainer(module=mlp(5, 3, hidden=(8,)), epochs=2, batch_size=30)
    first, second = (weights(trainer(POPULATION, MEMBERS, 0)) for trainer in (plain, replace(plain, compiled=True)))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert places == [str(tmp_path / "glasshouse" / "inductor")]


class Dressed(nn.Module):
    """The same network, with its answer in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.network = mlp(5, 3)()

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor | None]:
        return {"loss": None, "logits": self.network(x)}


def test_a_module_that_answers_with_a_dict_trains_like_the_network_in_it() -> None:
    plain, dressed = (TorchTrainer(module=module, epochs=3) for module in (mlp(5, 3), Dressed))
    expected = weights(plain(POPULATION, MEMBERS, 0))
    masks = np.stack([MEMBERS, ~MEMBERS])
    for found in (dressed(POPULATION, MEMBERS, 0), dressed.train_many(POPULATION, masks, [0, 1])[0]):
        for one, other in zip(weights(found), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    stopped = replace(dressed, early_stopping=EarlyStopping(patience=1))
    assert accuracy(query(stopped(POPULATION, MEMBERS, 0), POPULATION), MEMBERS) > 0.3


def test_a_module_that_ends_in_softmax_learns_like_one_that_gives_logits(caplog: pytest.LogCaptureFixture) -> None:
    """Cross-entropy of probabilities as if they were logits cannot come near 0, however long it is trained."""
    say_once.cache_clear()
    plain = TorchTrainer(module=mlp(5, 3), epochs=60)
    soft = replace(plain, module=lambda: nn.Sequential(mlp(5, 3)(), nn.Softmax(dim=1)))
    with caplog.at_level("INFO", logger="glasshouse"):
        expected = query(plain(POPULATION, MEMBERS, 0), POPULATION)
        assert "probabilities" not in caplog.text
        masks = np.stack([MEMBERS, ~MEMBERS])
        for found in (soft(POPULATION, MEMBERS, 0), soft.train_many(POPULATION, masks, [0, 1])[0]):
            np.testing.assert_allclose(query(found, POPULATION).loss, expected.loss, atol=1e-3)
    assert "trained on their logarithms" in caplog.text


def test_a_module_that_ends_in_a_sigmoid_learns_like_one_that_gives_a_logit() -> None:
    binary = Population(POPULATION.x, POPULATION.y > 0)
    plain, soft = (
        TorchTrainer(module=module, epochs=20, device="cpu")
        for module in (lambda: nn.Linear(5, 1), lambda: nn.Sequential(nn.Linear(5, 1), nn.Sigmoid()))
    )
    expected, found = (query(trainer(binary, MEMBERS, 0), binary) for trainer in (plain, soft))
    np.testing.assert_allclose(found.loss, expected.loss, atol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_label_smoothing_spreads_a_share_of_each_label_over_all_classes(smoothing: float) -> None:
    """Szegedy et al. 2016, Sec. 7: the loss is the cross-entropy with (1 - s) times the label and s/C of each class."""
    logits, labels = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 2, 1, 0])
    wanted = (1 - smoothing) * nn.functional.one_hot(labels, 3) + smoothing / 3
    own = -(wanted * logits.log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(mean_loss(logits, labels, smoothing=smoothing), own)
    pair = torch.stack([torch.zeros(6), logits[:, 0]], dim=1)  # one logit stands for the second of two classes
    one = mean_loss(logits[:, 0], labels.clamp(max=1), smoothing=smoothing)
    torch.testing.assert_close(one, mean_loss(pair, labels.clamp(max=1), smoothing=smoothing))


def test_smoothed_labels_make_answers_less_certain_and_are_of_classes_alone() -> None:
    plain = TorchTrainer(module=mlp(5, 3, hidden=(64,)), epochs=100, batch_size=16)
    losses = [
        query(one(POPULATION, MEMBERS, 0), POPULATION).loss[MEMBERS]
        for one in (plain, replace(plain, label_smoothing=0.3))
    ]
    assert losses[1].min() > 10 * losses[0].min()
    assert np.exp(-losses[1]).max() == pytest.approx(0.8, abs=0.1), "1 - s + s/3"
    with pytest.raises(InputError, match="label_smoothing: 1.0 is not a share below 1"):
        TorchTrainer(module=mlp(5, 3), label_smoothing=1.0)
    real = Population(POPULATION.x, POPULATION.x[:, 0], regression=True)
    with pytest.raises(InputError, match="label_smoothing: the population is a regression"):
        TorchTrainer(module=mlp(5, 1), label_smoothing=0.1, epochs=1)(real, MEMBERS, 0)
