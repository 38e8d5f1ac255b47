"""The user's own functions, named in an audit file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError

__all__ = ["imported"]


def imported(name: str, folder: Path, place: str) -> Any:
    """A function of the user, ``module:function``; the audit file's folder is searched first."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InputError(f"{place}: {name!r} is not of the form module:function.")
    sys.path.insert(0, str(folder.resolve()))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f"{place}: {module_name} cannot be imported: {error}.") from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, attribute):
        raise InputError(f"{place}: {module_name} has no {attribute}.")
    return getattr(module, attribute)
