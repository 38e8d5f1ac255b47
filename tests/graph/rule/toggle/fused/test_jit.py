from __future__ import annotations

import pytest
import torch

from glasshouse.graph.rule.toggle.fused.jit import blocks_of, kernel, usable
from glasshouse.graph.rule.toggle.fused.sums import paths_at_once


def test_kernels_are_not_for_the_cpu() -> None:
    assert not usable(torch.zeros(2))


def test_a_kernel_without_programs_is_not_compiled() -> None:
    @kernel
    def broken() -> None:
        raise AssertionError

    broken.launch(0)


@pytest.mark.parametrize("width", [1, 2, 7, 128, 129, 576])
def test_blocks_cover_a_row_and_none_is_idle(width: int) -> None:
    block, blocks = blocks_of(width, most=128)
    assert block & (block - 1) == 0
    assert (blocks - 1) * block < width <= blocks * block


def test_longer_lists_of_messages_are_loaded_in_larger_parts() -> None:
    assert [paths_at_once(mean) for mean in (0.0, 1.9, 3.0, 50.0)] == [2, 2, 4, 8]
