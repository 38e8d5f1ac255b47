from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from glasshouse.graph.rule.incremental.triton import blocks_of, kernel, usable
from glasshouse.graph.rule.incremental.triton_sum import paths_at_once


def test_kernels_are_not_for_the_cpu() -> None:
    assert not usable(torch.zeros(2))


def test_a_kernel_without_programs_is_not_compiled() -> None:
    @kernel
    def broken() -> None:
        raise AssertionError

    broken.launch(0)


def test_triton_is_imported_once_its_code_has_a_private_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    stand_in: Any = ModuleType("triton")  # which reads its settings when it compiles
    stand_in.language = None
    stand_in.jit = lambda function: {(3,): lambda *_, **__: places.append(os.environ["TRITON_CACHE_DIR"])}
    monkeypatch.setitem(sys.modules, "triton", stand_in)
    places: list[str] = []
    kernel(lambda: None).launch(3)
    assert places == [str(tmp_path / "glasshouse" / "triton")]


@pytest.mark.parametrize("width", [1, 2, 7, 128, 129, 576])
def test_blocks_cover_a_row_and_none_is_idle(width: int) -> None:
    block, blocks = blocks_of(width, most=128)
    assert block & (block - 1) == 0
    assert (blocks - 1) * block < width <= blocks * block


def test_longer_lists_of_messages_are_loaded_in_larger_parts() -> None:
    assert [paths_at_once(mean) for mean in (0.0, 1.9, 3.0, 50.0)] == [2, 2, 4, 8]
