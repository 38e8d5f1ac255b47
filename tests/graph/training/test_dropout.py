from __future__ import annotations

import pytest
import torch

from glasshouse.graph.training.dropout import drop


def generators(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_about_the_share_is_dropped_and_the_rest_makes_up_for_it(share: float) -> None:
    found = drop(torch.ones(2, 100, 101), share, generators(0, 1))
    assert float((found == 0).float().mean()) == pytest.approx(share, abs=0.01)
    assert float(found.mean()) == pytest.approx(1.0, abs=0.05)
    assert found.unique().tolist() == pytest.approx([0.0, 1 / (1 - share)])


def test_what_a_model_loses_does_not_depend_on_its_companions() -> None:
    hidden = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
    together = drop(hidden, 0.5, generators(5, 6))
    alone = drop(hidden[1:], 0.5, generators(6))
    assert torch.equal(together[1:], alone)


def test_without_a_share_nothing_is_drawn() -> None:
    random = generators(3)
    before = random[0].get_state()
    hidden = torch.randn(1, 4)
    assert drop(hidden, 0.0, random) is hidden
    assert torch.equal(random[0].get_state(), before)
