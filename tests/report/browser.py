"""A real browser for tests and screenshots: Debian's chromium, or Playwright's own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["browser", "missing"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    "--no-sandbox",  # containers have none to offer; the pages are our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable() -> str | None:
    """Where a browser is: GLASSHOUSE_BROWSER, or the first known name on the path; None where there is none."""
    asked = os.environ.get("GLASSHOUSE_BROWSER")
    return asked or next((found for name in _NAMES if (found := shutil.which(name))), None)


def missing() -> str | None:
    """Why no browser can be opened here; None where one can."""
    if not importlib.util.find_spec("playwright"):
        return "playwright is not installed: pip install -c constraints.txt '.[dev]'"
    found = executable()
    if found is None or not Path(found).exists():
        return "no browser: install chromium (apt-get install chromium), or say where in GLASSHOUSE_BROWSER"
    return None


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A headless browser that asks nobody for anything."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable(), args=list(_QUIET))
        try:
            yield opened
        finally:
            opened.close()
