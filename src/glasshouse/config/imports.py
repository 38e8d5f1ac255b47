"""The user's own functions, named in an audit file."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from glasshouse.compute.parcels import send_by_value
from glasshouse.errors import InputError, first_line, shortened

__all__ = ["called", "imported"]


def imported(name: str, folder: Path, place: str) -> Any:
    """A function of the user, ``module:function``; the audit file's folder is searched first, but never by workers."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InputError(f"{place}: {shortened(name)} is not of the form module:function.")
    sys.path.insert(0, str(folder.resolve()))
    known = set(sys.modules)
    try:
        with _reported(f"{place}: {shortened(module_name, quoted=False)} cannot be imported"):
            module = importlib.import_module(module_name)
    finally:
        sys.path.pop(0)
    send_by_value([sys.modules[new] for new in set(sys.modules) - known], folder)
    if not hasattr(module, attribute):
        raise InputError(f"{place}: {module_name} has no {shortened(attribute, quoted=False)}.")
    found = getattr(module, attribute)
    if not callable(found):
        raise InputError(f"{place}: {name} is of type {type(found).__name__}; name a function without arguments.")
    return found


def called(name: str, folder: Path, place: str) -> Any:
    """What a function of the user gives; where it fails, the error names the line of the user's code."""
    function = imported(name, folder, place)
    with _reported(f"{place}: {name} failed"):
        return function()


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """The user's own code may fail in any way; a program that ends itself fails too."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
        last = frames[-1] if len(frames) > 1 else None  # the first one is ours
        where = "" if last is None else f" ({last.filename}, line {last.lineno})"
        raise InputError(f"{what}: {first_line(error).rstrip('.')}{where}.") from error
