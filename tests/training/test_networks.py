from __future__ import annotations

import torch

from glasshouse.training import mlp


def test_each_call_of_the_factory_makes_a_fresh_network() -> None:
    build = mlp(6, 3, hidden=(5, 4), dropout=0.5)
    first, second = build(), build()
    assert first is not second
    assert [tuple(p.shape) for p in first.parameters()] == [(5, 6), (5,), (4, 5), (4,), (3, 4), (3,)]
    assert first(torch.zeros(2, 2, 3)).shape == (2, 3)
