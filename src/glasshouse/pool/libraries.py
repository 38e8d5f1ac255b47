"""Which code is a library's and which is the user's: a library is named with its version, user code is described."""

from __future__ import annotations

import functools
import importlib.metadata
import site
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

__all__ = ["library_of"]


def library_of(module: str | None) -> str | None:
    """The library that a module belongs to, with its version; None if it is the user's own code.

    A module is a library's if it is where Python installs packages. The user's own package that is installed in place
    (``pip install -e``) is the user's code.

    Example:
        >>> library_of("functools") == f"python {sys.version_info.major}.{sys.version_info.minor}"
        True
        >>> library_of("__main__") is None
        True
    """
    return None if not module else _of_package(module.partition(".")[0])


def _of_package(top: str) -> str | None:
    if top == "__main__":
        return None
    if top == "builtins" or top in sys.stdlib_module_names:
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    found = sys.modules.get(top)
    if top != "glasshouse" and not (found and _installed(found)):
        return None
    return f"{top} {_version(top, found)}"


def _installed(module: ModuleType) -> bool:
    places = [file] if (file := getattr(module, "__file__", None)) else list(getattr(module, "__path__", ()))
    return bool(places) and any(Path(places[0]).resolve().is_relative_to(root) for root in _roots())


@functools.cache
def _roots() -> tuple[Path, ...]:
    named = sysconfig.get_paths()
    places = [named[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    places += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(Path(place).resolve() for place in places)


@functools.cache
def _version(top: str, module: ModuleType | None) -> str:
    """Without the part after a plus, which tells how a library was built and not what it does."""
    told = getattr(module, "__version__", None)
    if not isinstance(told, str):
        try:
            told = importlib.metadata.version(top)
        except importlib.metadata.PackageNotFoundError:
            told = "of unknown version"
    return told.partition("+")[0]
