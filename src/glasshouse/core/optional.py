"""Names that are imported when they are used, and objects of libraries that may not be installed.

torch takes two seconds and 300 MB to import: these questions never import anything.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from glasshouse.core.errors import MissingExtraError

if TYPE_CHECKING:
    from torch import Tensor, nn


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562) that imports a name when it is first used.

    The names and their modules are those that the package imports for type checkers, under ``if TYPE_CHECKING``.
    """
    tree = ast.parse(inspect.getsource(sys.modules[package]))
    block = next(one for one in tree.body if isinstance(one, ast.If)).body
    home = {name.name: str(one.module) for one in block if isinstance(one, ast.ImportFrom) for name in one.names}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            found = getattr(importlib.import_module(home[name]), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtraError(name, package="torch", extra="torch") from None
        vars(sys.modules[package])[name] = found  # the next time it is found without this function
        return found

    return find, lambda: sorted({*vars(sys.modules[package]), *home})


@functools.cache  # what is installed is read from files
def installed_version(package: str) -> str | None:
    """The version of a package; None if it is not installed, as when it is run from a source tree."""
    from importlib import metadata  # takes longer to import than all of this room

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def is_made_by(thing: Any, module: str, name: str) -> bool:
    """Whether a thing is of a class of a module, which is not imported for the question."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(thing, getattr(loaded, name, ()))


def is_tensor(thing: Any) -> TypeGuard[Tensor]:
    """Whether it is a tensor of torch."""
    return is_made_by(thing, "torch", "Tensor")


def is_module(thing: Any) -> TypeGuard[nn.Module]:
    """Whether it is a module of torch."""
    return is_made_by(thing, "torch.nn", "Module")
