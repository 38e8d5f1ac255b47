from __future__ import annotations

import pytest
import torch
from torch import nn

from glasshouse.graph.programs.rows import share_dropped
from glasshouse.graph.training.many.graph import DrawnBy, drop, drop_parts


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


def test_parts_of_any_size_are_dropped_as_each_on_its_own() -> None:
    values, counts = torch.rand(9, 2, generator=torch.Generator().manual_seed(0)), [4, 0, 5]
    found = drop_parts(values, counts, 0.5, generators(0, 1, 2)).split(counts)
    for part, own, generator in zip(found, values.split(counts), generators(0, 1, 2), strict=True):
        assert torch.equal(part, drop(own[None], 0.5, [generator])[0])


def test_dropout_of_modules_layers_and_functions_draws_from_the_models_own_stream() -> None:
    x = torch.ones(50, 3)
    calls = (nn.Dropout(0.3), lambda x: nn.functional.dropout(x, p=0.3), lambda x: torch.dropout(x, 0.3, True))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    for call in calls:
        (generator,) = generators(4)
        with DrawnBy(generator):
            found = call(x)
        assert torch.equal(found, drop(x[None], 0.3, generators(4))[0])
        with DrawnBy(None):
            assert torch.equal(call(x), x)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_share_is_read_from_any_way_to_write_the_call() -> None:
    assert share_dropped(nn.functional.dropout, (None, 0.2, False), {}) == 0
    assert share_dropped(nn.functional.dropout, (None,), {"p": 0.2}) == 0.2
    assert share_dropped(nn.functional.alpha_dropout, (None, 0.2), {}) is None
