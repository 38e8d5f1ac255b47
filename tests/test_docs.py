from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_manual_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    assert done.returncode == 0, done.stderr
    api = (tmp_path / "site" / "api" / "index.html").read_text()
    for name in ("glasshouse.audit", "TorchTrainer", "toggle_losses", "ShadowPool"):
        assert name in api


def test_every_example_that_a_page_shows_is_there() -> None:
    """A formatter once took the includes for Python and broke them; the pages then showed the includes' text."""
    lines = [
        line for page in (ROOT / "docs").glob("*.md") for line in page.read_text().splitlines() if "examples/" in line
    ]
    shown = [line for line in lines if "8" in line.split("examples/")[0] and line.startswith("-")]
    assert shown
    for line in shown:
        assert line.startswith('--8<-- "examples/')
        assert (ROOT / line.split('"')[1]).is_file()
