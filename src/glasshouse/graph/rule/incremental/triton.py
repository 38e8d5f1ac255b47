"""Triton kernels, compiled on their first launch: the one place where Triton is hidden from everything else.

Each kernel does in one pass what takes torch many; the torch code beside each is its twin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from glasshouse.io.caches import keep_code_private


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def usable(tensor: Tensor) -> bool:
    """Whether the kernels can work on a tensor: it is on a GPU, and Triton is installed.

    Example:
        >>> import torch
        >>> usable(torch.zeros(3))
        False
    """
    return tensor.is_cuda and _has_triton()


class Kernel:
    """A function that Triton compiles when it is first launched, so that nothing imports Triton without a GPU."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._compiled: Any = None

    def launch(self, programs: int, *arguments: Any, warps: int = 4, **constants: Any) -> None:
        """Run that many programs; none if there is nothing to do."""
        if programs == 0:
            return
        if self._compiled is None:
            keep_code_private()
            import triton

            self._function.__globals__["tl"] = triton.language  # the name that kernels use
            self._compiled = triton.jit(self._function)
        self._compiled[(programs,)](*arguments, num_warps=warps, **constants)


def kernel(function: Callable[..., None]) -> Kernel:
    """Make a function of pointers and numbers a kernel; its module needs ``tl: Any = None``, which is filled in.

    Example:
        >>> @kernel
        ... def nothing(pointer): ...
        >>> nothing.launch(0)
    """
    return Kernel(function)


def blocks_of(width: int, *, most: int) -> tuple[int, int]:
    """A power of two, at most ``most``, that fills a row of ``width`` values, and how many of them a row needs.

    Example:
        >>> blocks_of(360, most=128), blocks_of(7, most=128)
        ((128, 3), (8, 1))
    """
    block = 1
    while block < min(width, most):
        block *= 2
    return block, -(-width // block)
