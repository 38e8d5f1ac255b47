"""What an audit file would run: code is imported, and pickles are read, only for a user who says that they trust it."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from glasshouse.compute.serialise import send_by_value
from glasshouse.core.errors import InputError, MissingExtraError, first_line, raise_faults, shortened
from glasshouse.data.named import data_root

_TRUST = "If you trust it, pass --trust-code (in Python, trust_code=True)."


def check_code(factories: Mapping[str, str], *, graph: str | None, folder: Path) -> None:
    """Refuse an audit file that runs code, with a line for each place: what would be imported, and from where.

    Factories are functions ``module:function``, by section; nothing is imported, and the folder is searched first.
    """
    faults = [
        f"{place}.factory: runs code: {factory}, from {_origin(factory, folder)}. {_TRUST}"
        for place, factory in factories.items()
    ]
    if graph is not None and (fault := _pickles(graph)):
        faults.append(f"graph.name: {fault} {_TRUST}")
    raise_faults(faults)


def _origin(factory: str, folder: Path) -> str:
    """The file that an import would run first; parents of a dotted name are not imported to look further."""
    top = factory.partition(":")[0].partition(".")[0]
    try:
        found = PathFinder.find_spec(top, [str(folder.resolve())]) or PathFinder.find_spec(top)
    except (ImportError, ValueError):
        found = None
    return "a module that was not found" if found is None else str(found.origin or found.submodule_search_locations)


def _pickles(name: str) -> str:
    """Why reading a named graph may run code; empty if it cannot."""
    try:
        from glasshouse.graph.data.load import ANY_CLASS, unpickles
    except MissingExtraError:  # the run itself says what to install
        return ""
    if not unpickles(name):
        return ""
    place = data_root().resolve()
    if name.startswith(ANY_CLASS):
        return f"{name} is read by a loader of torch_geometric that may run code in its files, from {place}."
    if os.environ.get("GLASSHOUSE_DATA"):  # the user's own word for the folder
        return ""
    return (
        f"{name} is read with pickle, which runs code in its files, from {place}. If it is yours, set GLASSHOUSE_DATA."
    )


def imported(name: str, folder: Path, place: str) -> Any:
    """A function of the user, ``module:function``; the audit file's folder is searched first, but never by workers."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InputError(f"{place}: {shortened(name)} is not of the form module:function.")
    sys.path.insert(0, str(folder.resolve()))
    known = set(sys.modules)
    try:
        with reported(f"{place}: {shortened(module_name, quoted=False)} cannot be imported"):
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


def called(name: str, folder: Path, place: str, *, kind: type = object, expected: str = "") -> Any:
    """What a function of the user gives, of this kind; where it fails, the error names the line of the user's code."""
    function = imported(name, folder, place)
    with reported(f"{place}: {name} failed"):
        made = function()
    if not isinstance(made, kind):
        raise InputError(f"{place}: {name} gave {type(made).__name__}; expected {expected}.")
    return made


@contextmanager
def reported(what: str) -> Iterator[None]:
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
