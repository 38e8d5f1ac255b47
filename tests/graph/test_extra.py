"""Without the packages of the extra, `glasshouse.graph` names it; nothing inside the package asks again."""

from __future__ import annotations

import importlib
import sys

import pytest

from glasshouse.core.errors import MissingExtraError


@pytest.mark.parametrize("package", ["torch_geometric", "numba"])
def test_without_a_package_the_extra_to_install_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[:2] == ["glasshouse", "graph"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"needs {package}, .* pip install 'glasshouse\[graph\]'"):
        importlib.import_module("glasshouse.graph")
