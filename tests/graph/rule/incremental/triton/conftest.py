"""Kernels need Triton and a GPU; without one, set ``TRITON_INTERPRET=1`` to run them in Triton's interpreter."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

from glasshouse.graph.rule.incremental import triton

CAN_RUN = find_spec("triton") is not None and (
    torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET", "") == "1"
)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Where kernels run in these tests; the interpreter works on the CPU, where they are not used otherwise."""
    if not CAN_RUN:
        pytest.skip("kernels need Triton and a GPU, or TRITON_INTERPRET=1")
    monkeypatch.setattr(triton, "usable", lambda tensor: True)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
