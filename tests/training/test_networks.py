from __future__ import annotations

import torch

from glasshouse.training import cnn, mlp


def test_each_call_of_the_factory_makes_a_fresh_network() -> None:
    build = mlp(6, 3, hidden=(5, 4), dropout=0.5)
    first, second = build(), build()
    assert first is not second
    assert [tuple(p.shape) for p in first.parameters()] == [(5, 6), (5,), (4, 5), (4,), (3, 4), (3,)]
    assert first(torch.zeros(2, 2, 3)).shape == (2, 3)


def test_a_convolutional_network_takes_images_of_any_size() -> None:
    model = cnn(1, 4, widths=(2, 3))()
    assert model(torch.zeros(2, 1, 8, 8)).shape == model(torch.zeros(2, 1, 28, 28)).shape == (2, 4)
