from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from torch import nn

from glasshouse import InputError, Population, PrivateTrainer, TorchTrainer
from glasshouse.evidence import query
from glasshouse.training import mlp

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(200, 4)).astype(np.float32), RANDOM.integers(2, size=200))
MEMBERS = np.arange(200) < 100


def test_a_private_model_fits_its_members_less_than_a_plain_one_and_repeats() -> None:
    pytest.importorskip("opacus")
    plain = TorchTrainer(module=mlp(4, 2), epochs=60, batch_size=8)(POPULATION, MEMBERS, 0)
    trainer = PrivateTrainer(module=mlp(4, 2), epsilon=1.0, delta=1e-3, epochs=6, batch_size=8)
    private, again = trainer(POPULATION, MEMBERS, 0), trainer(POPULATION, MEMBERS, 0)
    assert type(private) is nn.Sequential
    assert (query(private, POPULATION).loss == query(again, POPULATION).loss).all()
    gap = [np.diff([query(m, POPULATION).loss[who].mean() for who in (MEMBERS, ~MEMBERS)])[0] for m in (plain, private)]
    assert gap[1] < gap[0] / 2


def test_all_epochs_together_spend_the_epsilon_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    opacus = pytest.importorskip("opacus")
    made: list[Any] = []

    def engine(**options: Any) -> Any:
        made.append(engines(**options))
        return made[-1]

    engines = opacus.PrivacyEngine
    monkeypatch.setattr(opacus, "PrivacyEngine", engine)
    for epsilon, epochs in [(1.0, 3), (2.0, 3), (1.0, 6)]:
        PrivateTrainer(module=mlp(4, 2), epsilon=epsilon, delta=1e-3, epochs=epochs, batch_size=8)(
            POPULATION, MEMBERS, 0
        )
        assert 0.97 * epsilon < made[-1].get_epsilon(1e-3) <= epsilon


def test_batch_normalisation_is_refused_by_name() -> None:
    pytest.importorskip("opacus")
    trainer = PrivateTrainer(module=lambda: nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)), epsilon=1.0, delta=1e-3)
    with pytest.raises(InputError, match="BatchNorm"):
        trainer(POPULATION, MEMBERS, 0)


def test_without_opacus_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("opacus"):
            raise ImportError(name)
        return found(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'glasshouse\[dp\]'"):
        PrivateTrainer(module=mlp(4, 2), epsilon=1.0, delta=1e-3)(POPULATION, MEMBERS, 0)
