from __future__ import annotations

import pytest
import torch

from glasshouse import InputError
from glasshouse.training import WideResNet


def test_depth_28_and_width_2_has_the_known_size() -> None:
    """The usual count for WRN-28-2 with ten classes: about one and a half million weights."""
    model = WideResNet(classes=10)
    assert sum(parameter.numel() for parameter in model.parameters()) == 1_467_610
    assert sum(isinstance(module, torch.nn.Conv2d) and module.kernel_size == (3, 3) for module in model.modules()) == 25


def test_images_shrink_twice_and_every_weight_learns() -> None:
    model = WideResNet(classes=4, depth=10, width=1, channels=1)
    assert model.groups(model.stem(torch.zeros(2, 1, 32, 32))).shape == (2, 64, 8, 8)
    model(torch.rand(4, 1, 16, 16)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_depth_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="6n \\+ 4"):
        WideResNet(classes=10, depth=27)
