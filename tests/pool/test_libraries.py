from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from glasshouse.pool.description import library_of


def test_installed_libraries_are_named_with_their_version() -> None:
    assert library_of("numpy.linalg") == f"numpy {np.__version__}"
    assert library_of("builtins") == library_of("json.decoder") == f"python {sys.version_info[0]}.{sys.version_info[1]}"


def test_glasshouse_is_a_library_even_in_a_source_tree() -> None:
    assert str(library_of("glasshouse.attacks")).startswith("glasshouse ")


def test_what_lies_elsewhere_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ModuleType("own_trainer")
    own.__file__ = "/home/somebody/own_trainer.py"
    monkeypatch.setitem(sys.modules, "own_trainer", own)
    assert [library_of(name) for name in ("own_trainer", "own_trainer.part", "__main__", "never_imported")] == [
        None
    ] * 4
    assert library_of(None) is library_of("") is None


def test_how_a_library_was_built_is_not_a_part_of_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    built = ModuleType("built")
    built.__file__, built.__version__ = np.__file__, "1.2+cpu"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "built", built)
    assert library_of("built") == "built 1.2"
