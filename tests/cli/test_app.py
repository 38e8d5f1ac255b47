from __future__ import annotations

import importlib.metadata

import pytest
from typer.testing import CliRunner

from glasshouse.cli import app


def test_the_version_is_that_of_the_installed_package() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.output == f"glasshouse {importlib.metadata.version('glasshouse')}\n"


def test_the_version_of_a_tree_that_is_not_installed_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", unknown)
    assert "not installed" in CliRunner().invoke(app, ["--version"]).output


@pytest.mark.parametrize("words", ["glasshouse ", "glasshouse new t"])
def test_a_shell_completes_commands_and_kinds(words: str) -> None:
    """As bash asks: by environment variables, with the words so far."""
    asked = {"_GLASSHOUSE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = CliRunner().invoke(app, [], env=asked, prog_name="glasshouse")
    offered = done.output.split()
    assert {"audit", "new", "doctor"} <= set(offered) if words.endswith(" ") else offered == ["torch", "table"]
