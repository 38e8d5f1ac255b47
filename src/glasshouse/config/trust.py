"""What an audit file would run: code is imported, and pickles are read, only for a user who says that they trust it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from glasshouse.datasets import data_root
from glasshouse.errors import MissingExtraError, raise_faults

__all__ = ["check_code"]

_TRUST = "If you trust it, say so: --trust-code (in Python, trust_code=True)."


def check_code(factories: Mapping[str, str], *, graph: str | None, folder: Path) -> None:
    """Refuse an audit file that runs code, with a line for each place: what would be imported, and from where.

    Nothing is imported to find that out.

    Args:
        factories: functions ``module:function``, by the section that names them.
        graph: the name of the graph.
        folder: the audit file's folder, which is searched for modules first.

    Example:
        >>> check_code({"trainer": "json:dumps"}, graph=None, folder=Path())
        Traceback (most recent call last):
        glasshouse.errors.InputError: trainer.factory: runs code: json:dumps, from .../json/__init__.py. If you ...
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
