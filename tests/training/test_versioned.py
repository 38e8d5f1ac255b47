from __future__ import annotations

import copy
from typing import Any

import pytest

from glasshouse.core.errors import InputError
from glasshouse.training.trainer import Versioned


class Trainer:
    def __call__(self, population: Any, members: Any, seed: int) -> int:
        return seed

    def restore(self, population: Any, tensors: Any) -> str:
        return "restored"


def test_it_trains_and_restores_as_the_trainer_inside() -> None:
    trainer = Versioned(Trainer(), version="1")
    assert trainer(None, None, seed=4) == 4
    assert trainer.restore(None, {}) == "restored"
    assert not hasattr(trainer, "train_many")


def test_it_can_be_copied() -> None:
    assert copy.deepcopy(Versioned(Trainer(), version="1")).version == "1"


@pytest.mark.parametrize("version", ["", "  ", 1, None])
def test_what_is_not_a_version_is_refused(version: Any) -> None:
    with pytest.raises(InputError, match="is not a version"):
        Versioned(Trainer(), version=version)
