"""Benchmark scripts by name, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def folder_of(name: str) -> Path:
    """The area of a script, such as ``benchmarks/graphs``; names are unique over all areas."""
    (path,) = BENCHMARKS.glob(f"*/{name}.py")
    return path.parent


def benchmark(name: str) -> ModuleType:
    """A script, imported; the scripts of its area can be imported by name."""
    specification = importlib.util.spec_from_file_location(name, folder_of(name) / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look their module up there
    specification.loader.exec_module(module)
    return module
