"""Which extras of Glasshouse are installed, by the package's own metadata."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable, Mapping

__all__ = ["extras", "installed_version"]

_FOR_DEVELOPERS = ("dev", "docs")
_MODULES = {"mlflow-skinny": "mlflow", "pillow": "PIL"}  # where the module has another name than the package
_REQUIREMENT = re.compile(r"""^(?P<package>[\w.-]+).*;.*extra == ['"](?P<extra>[\w-]+)['"]""")


def extras(requirements: Iterable[str] | None = None) -> dict[str, list[str]]:
    """Packages by the name of the extra that needs them; without those that are for developers.

    Args:
        requirements: lines of the package's metadata; those of the installed Glasshouse by default.

    Raises:
        importlib.metadata.PackageNotFoundError: Glasshouse runs from a source tree that is not installed.

    Example:
        >>> extras(["numpy>=2.0", "numba>=0.60; extra == 'graph'", "ruff>=0.8; extra == 'dev'"])
        {'graph': ['numba']}
    """
    lines = importlib.metadata.requires("glasshouse") or [] if requirements is None else requirements
    found: dict[str, list[str]] = {}
    for match in filter(None, map(_REQUIREMENT.match, lines)):
        if match["extra"] not in _FOR_DEVELOPERS:
            found.setdefault(match["extra"], []).append(match["package"])
    return found


def installed_version(package: str, modules: Mapping[str, str] = _MODULES) -> str | None:
    """A package with its version, or another that brings the same module, such as xgboost-cpu; None without either.

    Example:
        >>> installed_version("no-such-package") is None
        True
    """
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        module = modules.get(package, package.replace("-", "_"))
        if importlib.util.find_spec(module) is None:
            return None
        others = importlib.metadata.packages_distributions().get(module, [])
        return f"{others[0]} {importlib.metadata.version(others[0])}" if others else f"{package} (version not known)"
