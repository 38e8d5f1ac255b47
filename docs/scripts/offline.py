"""For the manual's build: pages ask nobody else's server, also when they are opened as files.

The plugin ``offline`` would load a library for the search from elsewhere; ``docs/assets/file-worker.js`` takes its place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_THEIRS = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
_OURS = Path(__file__).parents[1] / "assets" / "file-worker.js"


def on_post_page(output: str, **known: Any) -> str:
    """A page with our own script, called by mkdocs."""
    return output.replace(_THEIRS, f"<script>{_OURS.read_text(encoding='utf-8')}</script>")


def on_post_template(output: str, **known: Any) -> str:
    """The same for a page without a source, such as the one for a wrong address."""
    return on_post_page(output)
