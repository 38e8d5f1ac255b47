"""Kernels as the Python functions that they are written as: quick to start, and line by line what is compiled."""

from __future__ import annotations

import functools
import sys
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any


@functools.cache
def in_python(module: ModuleType) -> Any:
    """A module's names, with its kernels, and the kernels that they call, not compiled."""
    names = dict(vars(module))  # what the functions made here look names up in
    for name, value in vars(module).items():
        function = getattr(value, "py_func", None)
        if function is None:
            continue
        if function.__module__ == module.__name__:
            names[name] = FunctionType(function.__code__, names, name)
        else:
            names[name] = vars(in_python(sys.modules[function.__module__]))[name]
    return SimpleNamespace(**names)
