"""The kernels for a GPU; without one, Triton's interpreter runs them, and without Triton they are not tested."""

from __future__ import annotations

import os

import pytest
import torch

from glasshouse.graph.rule.toggle.fused import jit

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it when it is imported
pytest.importorskip("triton")


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the kernels on the CPU too."""
    monkeypatch.setattr(jit, "usable", lambda tensor: True)
