from __future__ import annotations

import pytest
import torch
from torch import nn

from glasshouse.training.batches import fitting_threads


@pytest.fixture
def _two_threads() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
def test_a_small_network_has_one_thread_and_a_large_one_has_all() -> None:
    with fitting_threads(nn.Linear(10, 10), torch.zeros(100, 10), 64):
        assert torch.get_num_threads() == 1
    with fitting_threads(nn.Linear(2000, 1000), torch.zeros(1, 2000), 64):
        assert torch.get_num_threads() == 2
    with fitting_threads(nn.Conv2d(16, 32, 3), torch.zeros(1, 16, 32, 32), 64):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("_two_threads")
def test_the_setting_comes_back_after_an_error() -> None:
    with pytest.raises(RuntimeError), fitting_threads(nn.Linear(10, 10), torch.zeros(100, 10), 64):
        raise RuntimeError
    assert torch.get_num_threads() == 2
