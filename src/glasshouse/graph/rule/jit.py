"""Compiled kernels: the one place where numba is hidden from the type checker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numba
from numba import types
from numba.extending import overload

__all__ = ["choose_by_type", "inner_kernel", "kernel"]

P = ParamSpec("P")
R = TypeVar("R")

_njit: Any = numba.njit  # its type stubs have only some of its options

# Sums may be reordered (so that they can use vector instructions), but infinities keep their meaning.
_RELAXED = {"reassoc", "contract", "nsz", "arcp"}
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": _RELAXED,
    "error_model": "numpy",
    "_nrt": False,  # counting references to arrays costs as much as a row of work, and threads compete for the counts
}
_INNER: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, **_OPTIONS}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function to machine code on its first call, keep the code on disk, and run it without the GIL.

    Kernels are serial; the caller spreads the work over threads, so that a kernel may call another. They allocate
    nothing: every array that they write to is an argument.

    The function must be in a file, since the compiled code is kept next to it. Code that was inlined from another file
    is not compiled again when only that file changes: delete ``__pycache__`` after an edit.

    Example:
        >>> from glasshouse.graph.sampling.chains.posterior import log_ratio  # a kernel
        >>> import numpy as np
        >>> log_ratio(np.array([1.0, 2.0]))
        1.0
    """
    compiled: Callable[P, R] = _njit(cache=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
    return compiled


def inner_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that only other kernels call: it needs no Python interface, which takes long to compile."""
    compiled: Callable[P, R] = _njit(**_INNER)(function)
    return compiled


def choose_by_type(function: Callable[P, R], choices: Mapping[type, Callable[P, R]]) -> None:
    """Let kernels call ``function`` and get the choice for the named tuple class of its first argument.

    Args:
        function: a Python function; its body is never compiled.
        choices: named tuple class -> kernel with the same argument names.
    """

    def chosen(first: types.Type, *_: types.Type) -> Callable[P, R] | None:
        kernel: Any = choices.get(getattr(first, "instance_class", type(None)))
        return None if kernel is None else kernel.py_func  # numba compiles it again, with the same options

    options: Any = _INNER  # its type stubs have only some of them
    overload(function, jit_options=options, strict=False)(chosen)
