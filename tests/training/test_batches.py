from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.training.batches import batch_sizes, batches
from glasshouse.training.inputs import tensor_of

RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(3, size=120)
POPULATION = Population((RANDOM.normal(size=(120, 5)) + 2 * Y[:, None]).astype(np.float32), Y)
MEMBERS = np.arange(120) < 60


def test_a_lone_last_record_joins_the_batch_before_it() -> None:
    """Batch normalisation fails on one record."""
    module = lambda: nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))  # noqa: E731
    TorchTrainer(module=module, epochs=1, batch_size=59)(POPULATION, MEMBERS, 0)
    rows = torch.cat(list(batches(61, 20, torch.Generator().manual_seed(0))))
    assert sorted(rows.tolist()) == list(range(61))
    assert batch_sizes(61, 20) == [20, 20, 21]


def test_features_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="torch models need numbers"):
        tensor_of(np.array([["a"]]))
